"""Pages of docs/reference with a part that is generated from the code."""

from pathlib import Path
from typing import NamedTuple

_FOLDER = Path(__file__).parents[2] / "docs" / "reference"
_END = "<!-- end of the part made by `make docs` -->\n"


class Page(NamedTuple):
    """A page of docs/reference."""

    path: Path
    #: the complete text that the page should have
    text: str


def generated(name: str, source: str, part: str) -> Page:
    """Return a page whose generated part, between the two comments that mark it, is replaced by `part`.

    `source` is the file or folder that the part is made from, as the first of these comments names it.
    """
    path, begin = _FOLDER / name, f"<!-- made by `make docs` from {source} -->\n"
    before, rest = path.read_text().split(begin)
    return Page(path, f"{before}{begin}\n{part}\n{_END}{rest.split(_END)[1]}")
