"""The privileges that docs/operations/security.md lists."""

import re
from pathlib import Path

_PAGE = Path(__file__).parents[2] / "docs/operations/security.md"


def listed(language: str, pipeline: str, schema: str) -> list[str]:
    """Return the lines of the page's block in a language, for this pipeline and schema instead of `shop`."""
    [block] = re.findall(rf"```{language}\n(.*?)```", _PAGE.read_text(), re.DOTALL)
    text = block.replace("shop.*", f"{schema}.*").replace("shop", pipeline)
    return [line for line in text.splitlines() if line]
