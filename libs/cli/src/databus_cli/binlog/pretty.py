"""The format `pretty`: a block for each transaction, for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from databus_binlog import AnyEvent, FormatDescription, OversizedRows, Query, Rows, TableMap, XaPrepare
from databus_binlog.times import time_text
from databus_changes.table_maps import table_of
from databus_cli.binlog.lines import FRAMES, LoggedLines, shortened, xa_statement
from databus_cli.binlog.tables import Completion
from databus_cli.printed_rows import BOLD, DIM, RowPrinter, cut
from databus_cli.selection import Selection
from databus_core.events import Table


class Pretty(LoggedLines):
    """Prints rows and statements as they are logged. Columns that an update has changed are marked with `~`."""

    def __init__(self, selection: Selection, completion: Completion, *, coloured: bool) -> None:
        super().__init__(selection, completion)
        self._rows_of = RowPrinter(coloured=coloured)
        #: position of the transaction whose header was printed last
        self._headed = ("", 0)
        #: the statement that was printed last
        self._query: bytes | None = None
        #: table map's fingerprint → the table
        self._tables: dict[str, Table] = {}

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
                schema = self._rows_of.paint(DIM, f"  -- in {event.schema}") if event.schema else ""
                yield from self._lines([*self._header(), f"  {cut(_decoded(event.query))}{schema}"])
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
        return ["", self._rows_of.paint(BOLD, "  ".join(filter(None, parts)))]

    def _statement(self, query: bytes | None) -> list[str]:
        if query is None or query == self._query:
            return []
        self._query = query
        return [self._rows_of.paint(DIM, f"  -- {' '.join(shortened(query).split())}")]

    def _rows(self, event: Rows, table: TableMap) -> Iterator[bytes]:
        if (described := self._tables.get(event.table)) is None:
            described = self._tables[event.table] = table_of(table)
        images = iter(event.images())
        for image in images:
            after = next(images) if event.action == "update" else None
            yield from self._lines(self._rows_of.lines(event.action, described, image, after))

    def _lines(self, lines: Iterable[str]) -> Iterator[bytes]:
        return (line.encode("utf-8", "surrogateescape") + b"\n" for line in lines)


def _decoded(query: bytes) -> str:
    return query.decode(errors="replace")
