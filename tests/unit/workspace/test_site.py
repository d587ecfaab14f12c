"""The documentation as a site, which `make site` builds."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SITE = ROOT / "build/site"
#: attributes of elements that a browser loads by itself; `url` is that of style sheets
_LOADED = re.compile(r"<(?:script|img|iframe)\b[^>]*?\ssrc=\"([^\"]+)|<link\b[^>]*?\shref=\"([^\"]+)|url\(([^)]+)\)")


@pytest.mark.slow
def test_the_site_is_complete_can_be_searched_and_loads_nothing_from_the_internet() -> None:
    subprocess.run(["make", "site"], cwd=ROOT, check=True)
    pages = {path.relative_to(SITE).with_suffix("").as_posix() for path in SITE.rglob("*.html")}
    written = {path.relative_to(ROOT).with_suffix("").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert written | {"index", "README", "CHANGELOG"} <= pages
    index = (SITE / "searchindex.js").read_text()
    assert all(f'"{page}"' in index for page in written)
    files = [path.read_text() for kind in ("html", "css") for path in SITE.rglob(f"*.{kind}")]
    loaded = {address for text in files for match in _LOADED.findall(text) for address in match}
    assert "_static/scripts/furo.js" in {address.partition("?")[0] for address in loaded}
    assert [address for address in loaded if re.match("[\"']?(https?:)?//", address)] == []
