"""The lines that are printed: the interface of all formats, and the format `json`."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from databus_binlog import (
    ABSENT,
    AnyEvent,
    ColumnMap,
    Event,
    FieldType,
    FormatDescription,
    OversizedRows,
    Query,
    Rows,
    TableMap,
    Value,
    XaPrepare,
)
from databus_cli.binlog.files import DecoderOptions
from databus_cli.binlog.tables import Completion
from databus_cli.binlog.transaction import OpenTransaction
from databus_cli.printed_rows import LONGEST
from databus_cli.selection import Selection

_json = msgspec.json.Encoder().encode
#: statements that only begin or end a transaction; they are not printed
FRAMES = {b"BEGIN", b"COMMIT"}


class LineFormat(ABC):
    """Turns the events of files, in their order, into lines."""

    @abstractmethod
    def decoder_options(self) -> DecoderOptions:
        """Return how to decode the files."""

    @abstractmethod
    def start(self, head: FormatDescription, *, inside: bool) -> None:
        """Prepare for the files, given the FormatDescription of the first one.

        If reading starts at a later offset of that file (`inside`), `of` does not get this event, and the command calls
        this method. Otherwise `of` calls it, if the format needs it.
        """

    @abstractmethod
    def of(self, event: AnyEvent, tables: Mapping[str, TableMap]) -> Iterable[bytes]:
        """Return the lines of an event. Raises DatabusError if the format cannot continue."""

    def rest(self) -> Iterable[bytes]:
        """Return the lines that follow those of the last event. Not called after a failure."""
        return ()

    @abstractmethod
    def finish(self) -> Iterable[str]:
        """Finish after the last file; return one line for each kind of data that was left out."""


class LoggedLines(LineFormat):
    """The part that the formats have in common which print rows and statements as they are logged."""

    def __init__(self, selection: Selection, completion: Completion) -> None:
        self.selection = selection
        self.completion = completion
        self.transaction = OpenTransaction()

    def decoder_options(self) -> DecoderOptions:
        """Decode the rows of selected tables; columns without known names are @1, @2, …."""
        return {
            "wanted": self.selection.table,
            "describe": self.completion.describe,
            "by_statement": self.completion.by_statement,
        }

    def start(self, head: FormatDescription, *, inside: bool) -> None:
        """Prepare to complete table maps."""
        self.completion.start(head)

    def skip(self, event: AnyEvent) -> None:
        """Take note of an event that is not printed."""
        self.transaction.add(event)
        if isinstance(event, Query) and event.query not in FRAMES:
            self.completion.statement(event)

    def finish(self) -> Iterable[str]:
        """Return nothing: these formats leave nothing out."""
        return ()


class Json(LoggedLines):
    """Makes one line for each row, each rows event above --row-limit, and each statement except BEGIN and COMMIT."""

    def __init__(self, selection: Selection, completion: Completion) -> None:
        super().__init__(selection, completion)
        #: table map's fingerprint → name of each column, and whether its values are bytes
        self._columns: dict[str, list[tuple[str, bool]]] = {}

    def of(self, event: AnyEvent, tables: Mapping[str, TableMap]) -> Iterable[bytes]:
        """Return one line for each row, or one line for a statement."""
        match event:
            case Rows():
                return self._rows(event, {"type": event.action, **self._table(event, tables)}, tables[event.table])
            case OversizedRows():
                about = {"type": "oversized", **self._table(event, tables), "action": event.action, "size": event.size}
                return (_json(about) + b"\n",)
        self.transaction.add(event)
        match event:
            case FormatDescription():
                self.completion.start(event)
            case Query() if event.query not in FRAMES:
                self.completion.statement(event)
                if self.selection.statement(event):
                    about = {"type": "query", "schema": event.schema, **self._position(event)}
                    about["thread_id"] = event.thread_id
                    return (_json({**about, "query": _text(event.query)}) + b"\n",)
            case XaPrepare():
                about = {"type": "query", **self._position(event), "query": xa_statement(event)}
                return (_json(about) + b"\n",)
        return ()

    def _rows(self, event: Rows, head: dict[str, object], table: TableMap) -> Iterator[bytes]:
        start = _json(head)[:-1]
        if (columns := self._columns.get(event.table)) is None:
            columns = [(column.name, _is_binary(column)) for column in table.columns]
            self._columns[event.table] = columns
        rows = (_json(_row(columns, image)) for image in event.images())
        if event.action == "update":
            for before in rows:
                yield b'%b,"before":%b,"after":%b}\n' % (start, before, next(rows))
        else:
            for row in rows:
                yield b'%b,"row":%b}\n' % (start, row)

    def _table(self, event: Rows | OversizedRows, tables: Mapping[str, TableMap]) -> dict[str, object]:
        table, opened = tables[event.table], self.transaction
        position = {**self._position(event), "thread_id": opened.thread_id or None}
        if opened.query is not None:
            position["query"] = shortened(opened.query)
            opened.add(event)
        return {"schema": table.schema, "table": table.name, **position}

    def _position(self, event: Event) -> dict[str, object]:
        return {
            "file": event.file,
            "start": event.start,
            "end": event.end,
            "time": event.time,
            "server_id": event.server_id,
            "gtid": self.transaction.gtid or None,
        }


def shortened(query: bytes) -> str:
    """Return the statement of a row. It is cut if it is long: each row of the statement has it."""
    text = query.decode(errors="replace")
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def xa_statement(event: XaPrepare) -> str:
    """Return the statement that an event stands for."""
    return f"XA COMMIT {event.xid} ONE PHASE" if event.one_phase else f"XA PREPARE {event.xid}"


def _row(columns: list[tuple[str, bool]], image: list[Value]) -> dict[str, object]:
    """Return the values of a row image by column name, without absent columns."""
    named = zip(columns, image, strict=True)
    return {name: _shown(value, binary) for (name, binary), value in named if value is not ABSENT}


def _shown(value: Value, binary: bool) -> object:
    if not isinstance(value, bytes):
        return None
    return {"base64": value} if binary else _text(value)


def _is_binary(column: ColumnMap) -> bool:
    return column.charset == "binary" or column.type in {FieldType.GEOMETRY, FieldType.VECTOR}


def _text(value: bytes) -> str | dict[str, bytes]:
    """Return bytes as text, or as base64 if they are not UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": value}
