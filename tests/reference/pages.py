"""Pages of docs/reference with a part that is generated from the code."""

from pathlib import Path
from typing import NamedTuple

_FOLDER = Path(__file__).parents[2] / "docs" / "reference"
_END = "<!-- end of what `make docs` has made -->\n"


class Page(NamedTuple):
    """A page, and its text as it should be."""

    path: Path
    text: str


def generated(name: str, source: str, part: str) -> Page:
    """Return a page with this text between the comments that mark what is made from `source`."""
    path, begin = _FOLDER / name, f"<!-- made by `make docs` from {source} -->\n"
    before, rest = path.read_text().split(begin)
    return Page(path, f"{before}{begin}\n{part}\n{_END}{rest.split(_END)[1]}")
