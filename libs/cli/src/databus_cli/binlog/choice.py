"""Which transactions, statements and rows are printed, and where reading ends."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from databus_binlog import AnyEvent, FormatDescription, Gtid, Value
from databus_core.events import Table

if TYPE_CHECKING:  # imported only with these options
    from databus_cli.arguments.binlog import Offset
    from databus_cli.binlog.gtids import GtidList
    from databus_cli.binlog.where import Where

_SECOND_US = 1_000_000
#: A replica logs the times of its source. A file that was created this much later than --until is not read: the replica
#: would have been behind by that much.
_LAG_US = 3600 * _SECOND_US
#: a statement of DDL; before it may be comments, and the beginning of a comment that servers execute
_DDL = re.compile(
    rb"(?: \s | /\* M? ! \d* | /\* .*? \*/ | (?:--|\#) [^\n]* \n )* (?: CREATE | ALTER | DROP | RENAME | TRUNCATE ) \b",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)


class Choice:
    """The choice of all options. Times are in µs since the epoch, positions as `--from` and `--to` give them."""

    def __init__(
        self,
        *,
        start: Offset | str | None = None,
        end: Offset | str | None = None,
        since: int | None = None,
        until: int | None = None,
        gtids: GtidList | None = None,
        exclude_gtids: GtidList | None = None,
        thread: int | None = None,
        actions: Collection[str] | None = None,
        where: Where | None = None,
    ) -> None:
        self._first_gtid = start if isinstance(start, str) else None
        self._last_gtid = end if isinstance(end, str) else None
        self._end = None if isinstance(end, str) else end
        self._since, self._until = since, until
        self._gtids, self._exclude_gtids = gtids, exclude_gtids
        self._thread = thread
        self._actions = frozenset(actions) if actions else None
        self._where = where
        #: whether --from names a transaction that was not read yet
        self._waits = self._first_gtid is not None
        #: whether the last transaction or file that is read has begun
        self._is_last = False
        #: number of transactions whose connection is not logged, although --thread asks for one
        self._without_thread = 0
        #: where reading has ended because of --until
        self._late: FormatDescription | None = None

    # --- the part that is read ------------------------------------------------------------------------------------

    def ends_before(self, event: AnyEvent) -> bool:
        """Take note of the next event; return whether nothing from it on is read."""
        if self._end is not None:
            if event.file == self._end.file:
                self._is_last = True
                if event.start >= self._end.offset:
                    return True
            elif self._is_last and isinstance(event, FormatDescription):  # the file ends before the offset
                return True
        if isinstance(event, Gtid):
            gtid = event.gtid.lower()
            self._waits = self._waits and gtid != self._first_gtid
            if self._last_gtid is not None:
                if self._is_last:
                    return True
                self._is_last = gtid == self._last_gtid
        if self._until and isinstance(event, FormatDescription) and event.time * _SECOND_US >= self._until + _LAG_US:
            self._late = event
            return True
        return False

    # --- what of it is printed ------------------------------------------------------------------------------------

    def transaction(self, gtid: str, time_us: int) -> bool:
        """Return whether a transaction is in the chosen range."""
        if self._waits:
            return False
        if self._since is not None and time_us < self._since - (self._since % _SECOND_US) * (not time_us % _SECOND_US):
            return False  # a log without fractions of seconds is compared by seconds
        if self._until is not None and time_us >= self._until:
            return False
        if self._gtids is not None and gtid not in self._gtids:
            return False
        return self._exclude_gtids is None or gtid not in self._exclude_gtids

    def connection(self, thread_id: int) -> bool:
        """Return whether changes of this connection are printed; 0: it is not logged. Called once a transaction."""
        if self._thread is not None and not thread_id:
            self._without_thread += 1
        return self._thread in {None, thread_id}

    def statement(self, query: bytes) -> bool:
        """Return whether a statement is printed, if its transaction is."""
        if self._where is not None:
            return False
        return self._actions is None or ("ddl" in self._actions and _DDL.match(query) is not None)

    def action(self, action: str) -> bool:
        """Return whether rows with this action are printed."""
        return self._actions is None or action in self._actions

    def rows(self, table: Table, action: str, images: list[list[Value]]) -> list[list[Value]]:
        """Return the images of the rows that meet --where, before or after the change."""
        if self._where is None:
            return images
        if action != "update":
            return [image for image in images if self._where.meets(table, image)]
        return [
            image for pair in _pairs(images) if any(self._where.meets(table, each) for each in pair) for image in pair
        ]

    @property
    def tests_rows(self) -> bool:
        """Whether the values of rows decide."""
        return self._where is not None

    def notices(self) -> Iterator[str]:
        """Return what of the options had no effect, or another than one may expect."""
        if self._waits:
            yield f"--from: no transaction {self._first_gtid} was read"
        if self._last_gtid and not self._is_last:
            yield f"--to: no transaction {self._last_gtid} was read"
        if self._end and not self._is_last:
            yield f"--to: file {self._end.file} was not read"
        if self._late is not None:
            yield f"--until: reading ended before {self._late.file}, which was created more than an hour later"
        if self._without_thread:
            yield (
                f"--thread: {self._without_thread} transactions were left out because the binlog does not name their "
                "connection: MariaDB does so for rows only since 11.5"
            )
        if self._where is not None and self._where.misfit:
            yield f"--where fits no table that was read: {self._where.misfit}"


def _pairs(images: Sequence[list[Value]]) -> Iterator[tuple[list[Value], list[Value]]]:
    return zip(images[::2], images[1::2], strict=True)
