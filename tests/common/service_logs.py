"""Reads the logs of services."""

import json
import re
from pathlib import Path
from typing import Any

from databus_core.log_events import LogEvent

_UNEXPECTED = re.compile(
    rf"\b({LogEvent.CRASHED}|{LogEvent.BACKGROUND_ERROR}|Traceback|never retrieved|was destroyed|Unclosed)\b"
)


def unexpected(log: Path) -> list[str]:
    """List the lines that no test expects: unknown errors, tasks that nothing waited for, connections left open."""
    return [line for line in log.read_text().splitlines() if _UNEXPECTED.search(line)]


def lines(log: Path) -> list[dict[str, Any]]:
    """Read a log whose format is JSON."""
    return [json.loads(line) for line in log.read_text().splitlines()]
