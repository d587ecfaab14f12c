"""Lines of the records that the publisher would write, in any of its formats."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from databus.errors import PoisonError
from databus_binlog import AnyEvent, FormatDescription, TableMap
from databus_cli.binlog.changes import Changes
from databus_cli.binlog.lines import LineFormat
from databus_cli.binlog.schemas import flavor_of
from databus_cli.binlog.telling import Holding, Teller
from databus_cli.records import format_of, line_of
from databus_messages.formats.base import MessageSource

#: what stands for the pipeline's name
NAME = "binlog"


class Messages(LineFormat):
    """A line for each record."""

    def __init__(self, name: str, options: Mapping[str, object], wanted: Callable[[str, str], bool]) -> None:
        super().__init__()
        self._make = format_of(name, options)
        self._wanted = wanted
        self._teller: Teller | None = None

    def of(self, event: AnyEvent, tables: Mapping[str, TableMap]) -> Iterator[bytes]:
        """Give the lines of an event; a format that needs the transaction's end gets all of them there."""
        if self._teller is None:
            self._teller = self._begin(event if isinstance(event, FormatDescription) else self.head)
        try:
            yield from map(line_of, self._teller.tell(event, tables))
        except PoisonError as error:
            where = f"in the transaction that {event.file}:{event.start} belongs to"
            raise PoisonError(f"{error} ({where}); --format json can tell it") from error

    def finish(self) -> Counter[str]:
        """Count what had no line; nothing more comes."""
        if self._teller is not None:
            self._teller.finish()
        return self._left_out

    def _begin(self, head: FormatDescription | None) -> Teller:
        if head is None:
            raise AssertionError("a file begins with its head")
        made = self._make(MessageSource(name=NAME, flavor=flavor_of(head), host="", port=0))
        changes = Changes(head, self._wanted, self._left_out)
        return (Holding if made.needs_transaction_end else Teller)(made, changes, self._left_out)
