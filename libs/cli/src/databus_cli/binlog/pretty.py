"""The format `pretty`: a block for each transaction, for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from databus_binlog import ABSENT, AnyEvent, FormatDescription, OversizedRows, Query, Rows, TableMap, Value, XaPrepare
from databus_binlog.times import time_text
from databus_changes.table_maps import table_of
from databus_cli.binlog.lines import FRAMES, LONGEST, LoggedLines, shortened, xa_statement
from databus_cli.binlog.tables import Completion
from databus_cli.selection import Selection
from databus_core.events import Column
from databus_messages.formats.columns import enum_label, set_labels
from databus_messages.formats.sql_literals import literal_encoder

_BOLD, _DIM, _RED, _GREEN, _YELLOW = "1", "2", "31", "32", "33"
_COLOURS = {"insert": _GREEN, "update": _YELLOW, "delete": _RED}

Printer = Callable[[bytes], str]


class Pretty(LoggedLines):
    """Prints rows and statements as they are logged. Columns that an update has changed are marked with `~`."""

    def __init__(self, selection: Selection, completion: Completion, *, coloured: bool) -> None:
        super().__init__(selection, completion)
        self._coloured = coloured
        #: position of the transaction whose header was printed last
        self._headed = ("", 0)
        #: the statement that was printed last
        self._query: bytes | None = None
        #: table map's fingerprint → name and printer of each column
        self._columns: dict[str, list[tuple[str, Printer]]] = {}

    def of(self, event: AnyEvent, tables: Mapping[str, TableMap]) -> Iterator[bytes]:
        """Return the block's next lines."""
        query = self.transaction.query
        self.skip(event)
        match event:
            case Rows():
                yield from self._lines(self._header() + self._statement(query))
                yield from self._rows(event, tables[event.table])
            case OversizedRows():
                text = (
                    f"  {event.action.upper()} {tables[event.table].full_name}: {event.size} bytes, above --row-limit"
                )
                yield from self._lines([*self._header(), text])
            case Query() if event.query not in FRAMES and self.selection.statement(event):
                schema = self._paint(_DIM, f"  -- in {event.schema}") if event.schema else ""
                yield from self._lines([*self._header(), f"  {_cut(_decoded(event.query))}{schema}"])
            case FormatDescription():
                self.completion.start(event)
            case XaPrepare():
                yield from self._lines([*self._header(), f"  {xa_statement(event)}"])

    def _header(self) -> list[str]:
        opened = self.transaction
        if self._headed == (opened.file, opened.offset):
            return []
        self._headed, self._query = (opened.file, opened.offset), None
        parts = [time_text(opened.time_us), opened.gtid, f"thread {opened.thread_id}" if opened.thread_id else ""]
        parts.append(f"{opened.file}:{opened.offset}")
        return ["", self._paint(_BOLD, "  ".join(filter(None, parts)))]

    def _statement(self, query: bytes | None) -> list[str]:
        if query is None or query == self._query:
            return []
        self._query = query
        return [self._paint(_DIM, f"  -- {' '.join(shortened(query).split())}")]

    def _rows(self, event: Rows, table: TableMap) -> Iterator[bytes]:
        if (columns := self._columns.get(event.table)) is None:
            columns = self._columns[event.table] = [(each.name, _printer(each)) for each in table_of(table).columns]
        title = self._paint(_COLOURS[event.action], f"  {event.action.upper()} {table.full_name}")
        images = iter(event.images())
        for image in images:
            after = next(images) if event.action == "update" else None
            lines = [title]
            for index, (name, printer) in enumerate(columns):
                if line := self._cell(name, printer, image[index], ABSENT if after is None else after[index]):
                    lines.append(line)
            yield from self._lines(lines)

    def _cell(self, name: str, printer: Printer, value: Value, after: Value) -> str:
        """Return the line of a column; empty if the row does not contain it. `after`: ABSENT if it did not change."""
        if value is ABSENT and after is ABSENT:
            return ""
        if after is ABSENT or after == value:
            return f"      {name} = {_shown(printer, value)}"
        before = "?" if value is ABSENT else _shown(printer, value)
        return self._paint(_YELLOW, f"    ~ {name} = {before} → {_shown(printer, after)}")

    def _paint(self, colour: str, text: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self._coloured else text

    def _lines(self, lines: Iterable[str]) -> Iterator[bytes]:
        return (line.encode("utf-8", "surrogateescape") + b"\n" for line in lines)


def _printer(column: Column) -> Printer:
    if column.type == "enum":
        return lambda value: _quoted(enum_label(column, value)) if column.values else value.decode()
    if column.type == "set":
        return lambda value: _quoted(",".join(set_labels(column, value))) if column.values else value.decode()
    return literal_encoder(column, "mysql")


def _shown(printer: Printer, value: Value) -> str:
    if not isinstance(value, bytes):
        return "NULL"
    try:
        return _cut(printer(value))
    except (LookupError, ValueError):  # no such label, or not UTF-8
        return _cut(f"x'{value.hex()}'")


def _quoted(label: str) -> str:
    return "'" + label.replace("'", "''") + "'"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text)} characters)"


def _decoded(query: bytes) -> str:
    return query.decode(errors="replace")
