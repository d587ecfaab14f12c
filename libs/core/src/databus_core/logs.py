"""The log: one line for each event, with a name from `LogEvent`, a text for people and typed fields.

    log = get_logger(__name__)
    log.info(LogEvent.GENERATION_OPENED, "the reader can continue", transaction=progress.transaction)

After a call of `configure` the lines are written to stderr; without one they go where Python's logging sends them.
"""

import asyncio
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Unpack

from databus_binlog import Position
from databus_core.errors import DatabusError
from databus_core.log_events import Fields, LogEvent, PositionFields
from databus_core.log_lines import LineFormatter, bound_fields
from databus_core.settings import Log

#: libraries whose lines are left out by default: their errors reach us, too, and we log each once, in our words
_QUIET = ("aiokafka", "asyncmy", "httpx", "py4j", "opentelemetry.exporter.otlp.proto.http.trace_exporter")
#: number of characters after which a GTID set is cut
_MAX_GTID = 300


class Logger:
    """Writes the lines of one module."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def debug(self, event: LogEvent, text: str, **fields: Unpack[Fields]) -> None:
        """Log a detail that helps to follow what the service does."""
        self._log(logging.DEBUG, event, text, fields)

    def info(self, event: LogEvent, text: str, **fields: Unpack[Fields]) -> None:
        """Log what an operator may want to know afterwards."""
        self._log(logging.INFO, event, text, fields)

    def warning(self, event: LogEvent, text: str, **fields: Unpack[Fields]) -> None:
        """Log what an operator may have to act on."""
        self._log(logging.WARNING, event, text, fields)

    def error(
        self, event: LogEvent, text: str, *, cause: BaseException | None = None, **fields: Unpack[Fields]
    ) -> None:
        """Log what an operator has to act on, with the type and stack of its `cause`."""
        self._log(logging.ERROR, event, text, fields, cause)

    def _log(self, level: int, event: LogEvent, text: str, fields: Fields, cause: BaseException | None = None) -> None:
        self._logger.log(level, text, extra={"event": event, "fields": fields}, exc_info=cause)


def get_logger(module: str) -> Logger:
    """Return the logger of a module: `databus.reader.service` for module `databus_reader.service`."""
    return Logger(logging.getLogger(module.replace("databus_", "databus.", 1)))


_log = get_logger(__name__)


@contextmanager
def bound(**fields: Unpack[Fields]) -> Iterator[None]:
    """Add these fields to every line of the block, and of the tasks and `asyncio.to_thread` calls that it starts.

    An error of ours that leaves the block gets the fields, too.
    """
    token = bound_fields.set(bound_fields.get() | fields)
    try:
        yield
    except DatabusError as error:
        error.fields = fields | error.fields
        raise
    finally:
        bound_fields.reset(token)


def position_fields(position: Position | None) -> PositionFields:
    """Return the fields of a position, without those that it does not have."""
    fields = PositionFields()
    if position and position.file:
        fields["position"] = f"{position.file}:{position.offset}"
    if position and (gtids := position.gtid_set):
        fields["gtid"] = gtids if len(gtids) <= _MAX_GTID else f"{gtids[:_MAX_GTID]}…"
    return fields


def configure(service: str, section: Log, *, pipeline: str = "") -> None:
    """Write our lines and the warnings of libraries and Python to stderr; `section` sets the levels and the format."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter(service, section.format, pipeline=pipeline))
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.captureWarnings(capture=True)
    levels = dict.fromkeys(_QUIET, "critical") | {"databus": section.level} | section.levels
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level.upper())


#: aiokafka has just closed a connection that it left open when its start was cancelled, for instance by a stop
_CLOSED_LATE = "Unclosed AIOKafkaConnection"


def report_background_error(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """The event loop's exception handler: log an error that nothing waited for.

    asyncio's default handler would log the callback's arguments and the exception's message, which may contain rows.
    """
    error, future, task = context.get("exception"), context.get("future"), context.get("task")
    if isinstance(future, asyncio.Task):
        task = future
    elif isinstance(error, OSError):
        return  # the error of a connection; the code that used the connection got it, too
    elif context["message"] == _CLOSED_LATE:
        return
    name = getattr(task.get_coro(), "__qualname__", "") if task else ""
    _log.error(LogEvent.BACKGROUND_ERROR, context["message"].partition("(")[0], cause=error, task=name)
