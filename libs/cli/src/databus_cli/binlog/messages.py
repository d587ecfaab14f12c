"""Lines of the records that the publisher would write, in any of its formats."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping

from databus.errors import PoisonError
from databus.settings.rules import Rule
from databus_binlog import AnyEvent, FormatDescription, TableMap
from databus_cli.binlog.changes import Changes
from databus_cli.binlog.lines import LineFormat
from databus_cli.binlog.schemas import flavor_of
from databus_cli.records import line_of, output_plan
from databus_messages.encoder import EventEncoder
from databus_messages.formats.base import DdlStatement, MessageSource
from databus_messages.message import Message

#: stands for the pipeline's name
NAME = "binlog"


class Messages(LineFormat):
    """A line for each record."""

    def __init__(self, name: str, options: Mapping[str, object], wanted: Callable[[str, str], bool]) -> None:
        super().__init__()
        # One partition for all tables, so that a transaction has one frame.
        self._plan = output_plan(
            Rule(match=["*.*"], topic=NAME, partition_by="single", format=name, options={**options})
        )
        self._wanted = wanted
        self._changes: Changes | None = None
        self._encoder: EventEncoder | None = None

    def of(self, event: AnyEvent, tables: Mapping[str, TableMap]) -> Iterator[bytes]:
        """Give the lines of an event; a format that needs the transaction's end gives all of them there."""
        if self._changes is None or self._encoder is None:
            head = event if isinstance(event, FormatDescription) else self.head
            if head is None:
                raise AssertionError("a file begins with its head")
            self._changes = Changes(head, self._wanted, self._left_out)
            self._encoder = EventEncoder(
                rules=[self._plan.rule],
                plans=[self._plan],
                source=MessageSource(name=NAME, flavor=flavor_of(head), host="", port=0),
                partition_counts=defaultdict(lambda: 1),
            )
        try:
            for change in self._changes.of(event, tables):
                for message in self._encoder.messages(change):
                    yield from self._lines(message)
        except PoisonError as error:
            where = f"in the transaction that {event.file}:{event.start} belongs to"
            raise PoisonError(f"{error} ({where}); --format json can tell it") from error

    def finish(self) -> Counter[str]:
        """Count what had no line; nothing more comes."""
        if self._encoder is not None and self._encoder.in_transaction:
            if rows := self._encoder.buffered_rows:
                self._left_out["rows of transactions without an end"] += rows
            else:
                self._left_out["ends of transactions that the files do not tell"] += 1
        return self._left_out

    def _lines(self, message: Message) -> Iterator[bytes]:
        records = message.encode()
        if not records and isinstance(message.content, DdlStatement):
            self._left_out["statements"] += 1
        return map(line_of, records)
