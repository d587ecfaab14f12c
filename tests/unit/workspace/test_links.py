"""Every link in the repository's Markdown files leads somewhere, and every page of docs can be reached."""

import os
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from reference import decisions

ROOT = Path(__file__).parents[3]
PATTERNS = ["*.md", "docs/**/*.md", "libs/*/README.md", "services/*/README.md", "charts/*/README.md"]
PAGES = {str(path.relative_to(ROOT)) for pattern in PATTERNS for path in ROOT.glob(pattern)}
_FENCED = re.compile(r"^ *(```|~~~).*?^ *\1", re.M | re.S)
_CODE = re.compile(r"(`+).*?\1")
_LINK = re.compile(r"\[[^]]*]\(([^)\s]*)\)")


@cache
def prose(page: str) -> str:
    """Return a page without its blocks of code."""
    return _FENCED.sub("", (ROOT / page).read_text())


@cache
def anchors(page: str) -> set[str]:
    """Return the anchors that GitHub gives to a page's headings."""
    found, seen = set(), Counter[str]()
    for heading in re.findall(r"^#+ +(.*)$", prose(page), re.M):
        text = re.sub(r"\[([^]]*)]\([^)]*\)", r"\1", heading).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found


def links(page: str) -> list[tuple[str, str]]:
    """Return the path and the anchor that each relative link of a page leads to; a path that is a page's own is its."""
    folder, found = Path(page).parent, []
    for target in _LINK.findall(_CODE.sub("`code`", prose(page))):
        if not re.match(r"\w+:", target):
            path, _, anchor = target.partition("#")
            found.append((os.path.normpath(folder / path) if path else page, anchor))
    return found


@pytest.mark.parametrize("page", sorted(PAGES))
def test_every_link_of_a_page_leads_somewhere(page: str) -> None:
    broken = [
        f"{path}#{anchor}"
        for path, anchor in links(page)
        if not (ROOT / path).exists() or (anchor and anchor not in anchors(path))
    ]
    assert broken == []


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, waiting = set(), {"README.md"}
    while waiting:
        reached.add(page := waiting.pop())
        waiting |= {path for path, _ in links(page) if path in PAGES} - reached
    assert {page for page in PAGES if page.startswith("docs/")} - reached == set()


def test_the_list_of_decisions_is_complete() -> None:
    path, text = decisions.page()
    assert path.read_text() == text, "run `make docs`"


@pytest.mark.parametrize("page", sorted(page for page in PAGES if page.startswith("docs/")))
def test_every_test_that_a_page_names_exists(page: str) -> None:
    named = re.findall(r"`(tests/\S+\.(?:py|sql))`", prose(page))
    assert [path for path in named if not list(ROOT.glob(path))] == []
