"""Every log call of a library or service has a LogEvent, and every LogEvent is used."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from databus_core.log_events import LogEvent

ROOT = Path(__file__).parents[3]
CORE = "libs/core/src/databus_core"
SOURCES = [
    path
    for path in sorted([*ROOT.glob("libs/*/src/**/*.py"), *ROOT.glob("services/*/src/**/*.py")])
    if path != ROOT / CORE / "log_events.py"
]
#: modules that may import Python's `logging`: our log is built on it; of the commands, two silence other packages, and
#: one prints the warnings of our libraries in its own form
LOGGING = {
    f"{CORE}/logs.py",
    f"{CORE}/log_lines.py",
    "libs/cli/src/databus_cli/__main__.py",
    "libs/cli/src/databus_cli/binlog/__init__.py",
    "libs/devstack/src/devstack/__main__.py",
}
LEVELS = {"debug", "info", "warning", "error"}


def imports(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


def events(tree: ast.AST) -> Iterator[str]:
    """Yield the NAME of every `LogEvent.NAME`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "LogEvent":
            yield node.attr


def wrong_calls(tree: ast.AST) -> list[int]:
    """Return the line numbers of log calls whose first argument contains no LogEvent."""
    loggers = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        if getattr(node.value.func, "id", getattr(node.value.func, "attr", "")) in ("get_logger", "getLogger")
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LEVELS
        if isinstance(node.func.value, ast.Name) and node.func.value.id in loggers
    ]
    return [call.lineno for call in calls if not set(events(call.args[0])) & set(LogEvent.__members__)]


@pytest.mark.parametrize(
    "code", ['log.info("text")', 'log.warning(LogEvent.UNLISTED, "text")', "log.error(event, text)"]
)
def test_a_log_call_without_a_log_event_is_found(code: str) -> None:
    correct = 'log = get_logger(__name__)\nlog.info(LogEvent.READING, "reading")\n'
    assert wrong_calls(ast.parse(correct)) == []
    assert wrong_calls(ast.parse(correct + code)) == [3]


def test_every_log_call_has_a_log_event() -> None:
    trees = {str(path.relative_to(ROOT)): ast.parse(path.read_text()) for path in SOURCES}
    assert {path for path, tree in trees.items() if "logging" in imports(tree)} == LOGGING
    assert {path: lines for path, tree in trees.items() if (lines := wrong_calls(tree))} == {}


def test_every_log_event_is_used() -> None:
    used = {event for path in SOURCES for event in events(ast.parse(path.read_text()))}
    assert used == set(LogEvent.__members__)
