"""Each `pip install ./libs/…` in README and docs names all of our distributions that it needs: no index has them."""

import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("libs/*/README.md"))]
_INSTALL = re.compile(r"pip install ((?:['./\w{},\[\]-]+(?: \\\n +| )?)+)")


def lines() -> Iterator[tuple[str, str]]:
    """Return the arguments of each command that installs from a checkout, and its page."""
    for page in PAGES:
        for arguments in _INSTALL.findall(page.read_text()):
            if "./libs" in arguments:
                yield str(page.relative_to(ROOT)), arguments


def members(arguments: str) -> list[Requirement]:
    """Return our distributions among the arguments, as a shell expands them, each with its extras."""
    words = subprocess.run(["bash", "-c", f"printf '%s\\n' {arguments}"], capture_output=True, text=True, check=True)
    found = []
    for word in words.stdout.splitlines():
        if word.startswith("./"):
            path, bracket, extras = word.partition("[")
            found.append(Requirement(f"{project(path)['name']}{bracket}{extras}"))
    return found


def project(path: str) -> dict[str, object]:
    return tomllib.loads((ROOT / path / "pyproject.toml").read_text())["project"]


OURS = {project(str(file.parent))["name"]: project(str(file.parent)) for file in ROOT.glob("*/*/pyproject.toml")}


def needed(requirement: Requirement) -> Iterator[str]:
    """Return the names of our distributions that this one needs, itself included."""
    yield requirement.name
    declared = OURS[requirement.name]
    extras = [declared["optional-dependencies"][extra] for extra in requirement.extras]
    for text in [*declared["dependencies"], *(text for extra in extras for text in extra)]:
        if (one := Requirement(text)).name in OURS and one.name != requirement.name:
            yield from needed(one)


def test_there_are_such_lines() -> None:
    assert {"README.md", "docs/tutorial/first-pipeline.md", "docs/tutorial/first-lake.md"} <= {
        page for page, _ in lines()
    }


@pytest.mark.parametrize(("page", "arguments"), list(lines()))
def test_a_command_names_all_of_our_distributions_that_it_needs(page: str, arguments: str) -> None:
    named = members(arguments)
    assert {name for one in named for name in needed(one)} - {one.name for one in named} == set(), page
