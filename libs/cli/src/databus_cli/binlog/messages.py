"""The records that the publisher would write, in any of its formats, as lines."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from databus_binlog import AnyEvent, FormatDescription, TableMap
from databus_changes.tables import CapturedTables
from databus_cli.binlog.choice import Choice
from databus_cli.binlog.definitions import Definitions, flavor_of
from databus_cli.binlog.translated import Translated
from databus_cli.records import output_plan
from databus_core.errors import PoisonError
from databus_core.events import Event
from databus_core.settings.rules import Rule
from databus_messages.encoder import EventEncoder
from databus_messages.formats.base import DdlStatement, MessageSource
from databus_messages.message import Message
from databus_messages.record_lines import line_of

#: the pipeline's name in the records
NAME = "binlog"


class Messages(Translated):
    """Translates events as reader and publisher do, and makes one line for each record."""

    def __init__(
        self,
        name: str,
        options: Mapping[str, object],
        captured: CapturedTables,
        definitions: Definitions,
        choice: Choice,
        *,
        lenient: bool,
    ) -> None:
        super().__init__(captured, definitions, choice, lenient=lenient)
        # One partition for all tables, so that a transaction has one BEGIN and one END.
        rule = Rule(match=["*.*"], topic=NAME, partition_by="single", format=name, options=dict(options))
        self._plan = output_plan(rule)
        self._left_out: Counter[str] = Counter()
        self._encoder: EventEncoder | None = None

    def start(self, head: FormatDescription, *, inside: bool) -> None:
        """Create the translation and the encoder."""
        super().start(head, inside=inside)
        source = MessageSource(name=NAME, flavor=flavor_of(head), host="", port=0)
        self._encoder = EventEncoder([self._plan.rule], [self._plan], source, defaultdict(lambda: 1))

    def of(self, event: AnyEvent, tables: Mapping[str, TableMap]) -> Iterator[bytes]:
        """Return the lines of an event.

        With `lenient`, or if the format needs a transaction's end, a transaction's lines are returned only at its end.
        """
        try:
            yield from super().of(event, tables)
        except PoisonError as error:
            where = f"in the transaction that {event.file}:{event.start} belongs to"
            raise PoisonError(f"{error} ({where}); --format json can print the transaction") from error

    def lines_of(self, change: Event, event: AnyEvent) -> Iterator[bytes]:
        """Return the records of a change."""
        if self._encoder is None:
            raise AssertionError("a file starts with a FormatDescription")
        for message in self._encoder.messages(change):
            yield from self._lines(message)

    def finish(self) -> Iterator[str]:
        """Finish after the last file; yield one line for each kind of data that was left out."""
        yield from super().finish()
        if self._translation is not None:
            yield from self._translation.assumptions()
        if self._encoder is not None and self._encoder.in_transaction:
            if rows := self._encoder.buffered_rows:
                yield f"rows of a transaction whose end is not in the files: {rows} left out; --format json shows them"
            else:
                yield "the end of the last transaction is not in the files; the output lacks it, too"
        for what, count in self._left_out.items():
            yield f"{what}: {count} left out; this format has no message for them, --format json shows them"

    def _lines(self, message: Message) -> Iterator[bytes]:
        if message.unread is not None:
            self._left_out["rows above --row-limit"] += 1
            return iter(())
        records = message.encode()
        if not records and isinstance(message.content, DdlStatement):
            self._left_out["statements"] += 1
        return map(line_of, records)
