"""The lines of the log, as JSON or for the console.

An error that is not ours is written without its message, which may quote a row; its type and stack locate the bug.
"""

import json
import logging
import traceback
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from databus_core.errors import DatabusError
from databus_core.log_events import Fields, LogEvent

#: control characters, each of which becomes a space on the console
_CONTROL = dict.fromkeys((*range(32), *range(127, 160)), " ")

#: fields of the current block, see `databus_core.logs.bound`
bound_fields: ContextVar[Fields] = ContextVar("bound_fields", default=Fields())  # noqa: B039  # never changed in place

#: makes a line from a head (time, level, service, event and message), fields and a stack
_Writer: TypeAlias = Callable[[Mapping[str, str], Mapping[str, object], str], str]


class LineFormatter(logging.Formatter):
    """Formats the log records of services and libraries as JSON or for the console."""

    def __init__(self, service: str, style: Literal["console", "json"], *, pipeline: str = "") -> None:
        super().__init__()
        self._service = service
        self._own = Fields(pipeline=pipeline) if pipeline else Fields()
        self._write: _Writer = _console if style == "console" else _json

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as one line; on the console the lines of its stack follow."""
        event: LogEvent = getattr(record, "event", LogEvent.LIBRARY)
        fields: dict[str, object] = {**self._own, **bound_fields.get(), **getattr(record, "fields", {})}
        if event is LogEvent.LIBRARY or self._write is _json:
            fields["logger"] = record.name
        head = {
            "time": f"{datetime.fromtimestamp(record.created, UTC):%Y-%m-%dT%H:%M:%S}.{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "service": self._service,
            "event": str(event),
            "message": " ".join(record.getMessage().split()),
        }
        error = record.exc_info[1] if record.exc_info else None
        return self._write(head, fields, describe(error) if error else "")


def _json(head: Mapping[str, str], fields: Mapping[str, object], stack: str) -> str:
    return json.dumps({**head, **fields} | ({"stack": stack} if stack else {}), ensure_ascii=False)


def _console(head: Mapping[str, str], fields: Mapping[str, object], stack: str) -> str:
    words = [head["time"], head["level"].upper().ljust(7), head["service"], f"{head['event']}:", head["message"]]
    words += [f"{name}={_word(value)}" for name, value in fields.items()]
    return "\n  ".join(line.translate(_CONTROL) for line in [" ".join(words), *stack.splitlines()])


def _word(value: object) -> str:
    """Quote a value whose end would not be visible without quotes."""
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if not text or set(text) & set(' "=') else text


def describe(error: BaseException) -> str:
    """Describe an error and its causes, each with its type and stack; only errors of ours keep their message."""
    message = f": {error}" if isinstance(error, DatabusError) else ""
    lines = [f"{type(error).__module__}.{type(error).__qualname__}{message}"]
    lines += [f"  {frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)]
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n".join([*lines, *(describe(each) for each in (*inner, *([cause] if cause else ())))])
