"""Lines of the records that the publisher would write, in any of its formats."""

from collections import Counter
from collections.abc import Iterator, Mapping

from databus.errors import PoisonError
from databus_binlog import AnyEvent, FormatDescription, TableMap
from databus_changes.tables import TableFilter
from databus_cli.binlog.files import DecoderOptions
from databus_cli.binlog.lines import LineFormat
from databus_cli.binlog.telling import Holding, Teller
from databus_cli.binlog.translation import Translation, flavor_of
from databus_cli.records import format_of, line_of
from databus_messages.formats.base import MessageSource

#: what stands for the pipeline's name
NAME = "binlog"


class Messages(LineFormat):
    """A line for each record."""

    def __init__(
        self, name: str, options: Mapping[str, object], captured: TableFilter, *, lenient: bool = False
    ) -> None:
        self._make = format_of(name, options)
        self._captured = captured
        self._lenient = lenient
        self._left_out: Counter[str] = Counter()
        self._translation: Translation | None = None
        self._teller: Teller | None = None

    def decoder_options(self) -> DecoderOptions:
        """Decode the rows of captured tables, and end each piece behind a statement, for it may alter tables."""
        return {"wanted": self._captured.captures, "describe": self._describe, "by_statement": True}

    def start(self, head: FormatDescription, *, inside: bool) -> None:
        """Make the translation for the first file."""
        made = self._make(MessageSource(name=NAME, flavor=flavor_of(head), host="", port=0))
        self._translation = Translation(head, self._captured, lenient=self._lenient, inside=inside)
        self._teller = (Holding if made.needs_transaction_end else Teller)(made, self._left_out)

    def of(self, event: AnyEvent, tables: Mapping[str, TableMap]) -> Iterator[bytes]:
        """Give the lines of an event; a format that needs the transaction's end gets all of them there."""
        if self._translation is None and isinstance(event, FormatDescription):
            self.start(event, inside=False)
        if self._translation is None or self._teller is None:
            raise AssertionError("a file begins with its head")
        try:
            for change in self._translation.translate(event, tables):
                yield from map(line_of, self._teller.tell(change))
        except PoisonError as error:
            where = f"in the transaction that {event.file}:{event.start} belongs to"
            raise PoisonError(f"{error} ({where}); --format json can tell it") from error

    def finish(self) -> Iterator[str]:
        """Say what had no line; nothing more comes."""
        if self._translation is not None and self._teller is not None:
            self._teller.finish()
            yield from self._translation.finish()
        for what, count in self._left_out.items():
            yield f"{what} left out: {count}; this format has no message for them, --format json shows them"

    def _describe(self, table_map: TableMap) -> TableMap:
        if self._translation is None:
            raise AssertionError("a file begins with its head")
        return self._translation.describe(table_map)
