"""docs/explanation/path-of-a-dump.md names files, classes and functions that exist."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
SERVICE = ROOT / "services/dump-api/src/databus_dump_api"
STEPS = re.findall(r"`(\S+\.py)` → `(\S+)`", (ROOT / "docs/explanation/path-of-a-dump.md").read_text())


def definitions(path: Path) -> set[str]:
    """Return the qualified names of all classes and functions in a module."""
    found: set[str] = set()

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                found.add(f"{prefix}{child.name}")
                visit(child, f"{prefix}{child.name}.")

    visit(ast.parse(path.read_text()), "")
    return found


def test_every_step_names_a_function_that_exists() -> None:
    missing = [
        f"{file}: {name}"
        for file, name in STEPS
        if name not in definitions(ROOT / file if file.startswith("libs/") else SERVICE / file)
    ]
    assert missing == []


def test_the_path_has_at_most_20_files() -> None:
    assert 10 < len({file for file, _ in STEPS}) <= 20
