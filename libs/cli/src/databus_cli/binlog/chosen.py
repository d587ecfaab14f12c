"""Print only what is chosen of the binlog as it is logged."""

from collections.abc import Iterable, Mapping

import msgspec

from databus_binlog import AnyEvent, FormatDescription, OversizedRows, Query, Rows, TableMap, XaPrepare
from databus_changes.table_maps import table_of
from databus_cli.binlog.choice import Choice
from databus_cli.binlog.files import DecoderOptions
from databus_cli.binlog.lines import FRAMES, LineFormat, LoggedLines
from databus_cli.binlog.transaction import OpenTransaction
from databus_core.events import Table

_encode = msgspec.msgpack.Encoder().encode


class ChosenLines(LineFormat):
    """Gives another format only the rows and statements that are chosen."""

    def __init__(self, lines: LoggedLines, choice: Choice) -> None:
        self._lines = lines
        self._choice = choice
        self._transaction = OpenTransaction()
        #: whether the open transaction is chosen; None: this was not decided yet
        self._chosen: bool | None = None
        self._tables: dict[str, Table] = {}

    def decoder_options(self) -> DecoderOptions:
        """Return those of the other format."""
        return self._lines.decoder_options()

    def start(self, head: FormatDescription, *, inside: bool) -> None:
        """Prepare the other format."""
        self._lines.start(head, inside=inside)

    def of(self, event: AnyEvent, tables: Mapping[str, TableMap]) -> Iterable[bytes]:
        """Return the lines of an event, if something of it is chosen."""
        if self._transaction.add(event):
            self._chosen = None
        if (chosen := self._part(event, tables)) is not None:
            return self._lines.of(chosen, tables)
        self._lines.skip(event)
        return ()

    def finish(self) -> Iterable[str]:
        """Return the notices of the other format."""
        return self._lines.finish()

    def _part(self, event: AnyEvent, tables: Mapping[str, TableMap]) -> AnyEvent | None:
        """Return what of an event is chosen; None: nothing. Events that print nothing are always chosen."""
        choice = self._choice
        match event:
            case Rows():
                return self._rows(event, tables[event.table]) if choice.action(event.action) else None
            case OversizedRows():
                return event if choice.action(event.action) and not choice.tests_rows and self._is_chosen() else None
            case Query() if event.query not in FRAMES:
                return event if choice.statement(event.query) and self._is_chosen() else None
            case XaPrepare():
                return event if choice.statement(b"XA") and self._is_chosen() else None
        return event

    def _rows(self, event: Rows, table_map: TableMap) -> Rows | None:
        if not self._is_chosen():
            return None
        if not self._choice.tests_rows:
            return event
        if (table := self._tables.get(event.table)) is None:
            table = self._tables[event.table] = table_of(table_map)
        images = self._choice.rows(table, event.action, event.images())
        if not images:
            return None
        return msgspec.structs.replace(event, count=len(images), rows=msgspec.Raw(_encode(images)))

    def _is_chosen(self) -> bool:
        if self._chosen is None:
            opened = self._transaction
            self._chosen = self._choice.transaction(opened.gtid, opened.time_us) and self._choice.connection(
                opened.thread_id
            )
        return self._chosen
