"""docs/adr/README.md, the list of all decisions."""

from pathlib import Path

from reference.pages import Page

_FOLDER = Path(__file__).parents[2] / "docs" / "adr"
_HEAD = """# Decisions

Decisions that someone may question, each in half a page: what was decided, why, and what would change it.

<!-- written by `make docs`: one line for each file in this folder -->

"""


def page() -> Page:
    """Return the page, with a link to each decision."""
    titles = {file.name: file.read_text().splitlines()[0] for file in sorted(_FOLDER.glob("[0-9]*.md"))}
    lines = (f"* [{title.removeprefix('# ')}]({name})\n" for name, title in titles.items())
    return Page(_FOLDER / "README.md", _HEAD + "".join(lines))
