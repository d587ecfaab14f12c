"""The part that all formats have in common which print changes as the reader translates them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping

from databus_binlog import AnyEvent, FormatDescription, TableMap
from databus_changes.doubts import Reason
from databus_changes.tables import CapturedTables
from databus_cli.binlog.choice import Choice
from databus_cli.binlog.definitions import Definitions
from databus_cli.binlog.files import DecoderOptions
from databus_cli.binlog.lines import LineFormat
from databus_cli.binlog.translation import Translation
from databus_core.events import Begin, Event, SchemaDefinition, TableDefinition


class Translated(LineFormat):
    """Translates the events of captured tables to changes, and prints those of chosen transactions."""

    #: as in `Translation`
    partial = False
    ignored: frozenset[Reason] = frozenset()

    def __init__(self, captured: CapturedTables, definitions: Definitions, choice: Choice, *, lenient: bool) -> None:
        self.captured = captured
        self.choice = choice
        self._definitions = definitions
        self._lenient = lenient
        self._translation: Translation | None = None
        self._chosen = False

    def decoder_options(self) -> DecoderOptions:
        """Decode the rows of captured tables. DDL is translated before the rows after it are decoded."""
        return {"wanted": self.captured.captures, "describe": self._describe, "by_statement": True}

    def start(self, head: FormatDescription, *, inside: bool) -> None:
        """Create the translation."""
        self._translation = Translation(
            head,
            self.captured,
            self._definitions,
            lenient=self._lenient,
            inside=inside,
            partial=self.partial,
            ignored=self.ignored,
        )

    def of(self, event: AnyEvent, tables: Mapping[str, TableMap]) -> Iterator[bytes]:
        """Return the lines of an event; with `lenient`, the lines of a transaction are returned only at its end."""
        if self._translation is None and isinstance(event, FormatDescription):
            self.start(event, inside=False)
        if self._translation is None:
            raise AssertionError("a file starts with a FormatDescription")
        for change in self._of_chosen(self._translation.translate(event, tables)):
            yield from self.lines_of(change, event)

    def finish(self) -> Iterator[str]:
        """Finish after the last file; yield one line for each kind of data that was left out."""
        if self._translation is not None:
            yield from self._translation.finish()

    @abstractmethod
    def lines_of(self, change: Event, event: AnyEvent) -> Iterable[bytes]:
        """Return the lines of a change in a chosen transaction, or of a definition. `event` is the last one read."""

    def _of_chosen(self, changes: Iterable[Event]) -> Iterator[Event]:
        for change in changes:
            if isinstance(change, Begin):
                self._chosen = self.choice.transaction(change.gtid, change.time_us) and self.choice.connection(
                    change.thread_id
                )
            if self._chosen or isinstance(change, TableDefinition | SchemaDefinition):
                yield change

    def _describe(self, table_map: TableMap) -> TableMap:
        if self._translation is None:
            raise AssertionError("a file starts with a FormatDescription")
        return self._translation.describe(table_map)
