"""The pages docs/explanation/path-of-*.md name files, classes, functions and variables that exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DUMP_API = ROOT / "services/dump-api/src/databus_dump_api"
PAGES = sorted((ROOT / "docs/explanation").glob("path-of-*.md"))


def steps(page: Path) -> list[tuple[Path, str]]:
    """Return the file and the name in it that each step has; files without a folder are dump-api's."""
    named = re.findall(r"`(\S+\.py)` → `(\S+)`", page.read_text())
    return [((ROOT if "/" in file else DUMP_API) / file, name) for file, name in named]


def definitions(path: Path) -> set[str]:
    """Return a module's variables, and the qualified names of its classes and functions, except in `if` or `with`."""
    found: set[str] = set()

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                found.add(f"{prefix}{child.name}")
                visit(child, f"{prefix}{child.name}.")
            elif isinstance(child, ast.Assign) and not prefix:
                found.update(ast.unparse(target) for target in child.targets)

    visit(ast.parse(path.read_text()), "")
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_step_names_something_that_exists(page: Path) -> None:
    assert [f"{file}: {name}" for file, name in steps(page) if name not in definitions(file)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_names_6_to_20_files(page: Path) -> None:
    assert 5 < len({file for file, _ in steps(page)}) <= 20
