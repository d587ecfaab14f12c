"""Reads the logs of services."""

import json
import re
from pathlib import Path
from typing import Any

_UNEXPECTED = re.compile(r"\b(crashed|unattended_error|Traceback|never retrieved|was destroyed|Unclosed)\b")


def unexpected(log: Path) -> list[str]:
    """List the lines that no test expects: unknown errors, tasks that nothing waited for, connections left open."""
    return [line for line in log.read_text().splitlines() if _UNEXPECTED.search(line)]


def lines(log: Path) -> list[dict[str, Any]]:
    """Read a log whose format is JSON."""
    return [json.loads(line) for line in log.read_text().splitlines()]
