"""XA transactions that are prepared: their rows are held until it is known whether they take effect (ADR 15).

The XA COMMIT or XA ROLLBACK may come much later than the XA PREPARE, after other transactions, in another file or on
another host. Rows that are not held, because the reader was started again meanwhile, are read again from the binlog.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from databus_binlog import events as binlog
from databus_changes import doubts
from databus_changes.doubts import OnDoubt
from databus_changes.executed import Executed
from databus_changes.held_rows import HeldTransaction
from databus_core.errors import SourceRefused
from databus_core.events import Decided, Event, Prepared, Table
from databus_core.progress import PreparedTransaction

#: When the rows of all prepared transactions in memory are larger, those of the largest one are moved to its file.
_MEMORY_BYTES = 2**24


class PreparedLog(Protocol):
    """Reads XA transactions that were prepared before the reader's start."""

    async def search(self, xid: str, commit: binlog.Query) -> dict[str, PreparedTransaction | None]:
        """Find the transactions that were prepared before the XA COMMIT of one of them, and were open then.

        The result has that transaction, and all open ones between both events; None for those without captured rows,
        and for one that was committed already (after a crash, MariaDB may log a second XA COMMIT).
        Raises SourceRefused if the binlog no longer has that transaction.
        """

    async def read(self, transaction: PreparedTransaction) -> HeldTransaction:
        """Read the rows of a transaction again. Raises SourceRefused if the binlog no longer has them."""


class PreparedTransactions:
    """The prepared transactions whose outcome is not known yet.

    `listed` are those that the progress has. `log` is None if there is no server to read the others from.
    """

    def __init__(self, listed: Iterable[PreparedTransaction] = (), log: PreparedLog | None = None) -> None:
        self._log = log
        self._held: dict[str, HeldTransaction] = {}
        #: transactions whose rows are not held; None for those without captured rows
        self._unread: dict[str, PreparedTransaction | None] = {each.xid: each for each in listed}
        #: XIDs of the transactions that the progress has, or will have when it gets to the present position
        self._listed = set(self._unread)
        #: bytes of held rows in memory
        self._size = 0
        #: rows to emit, and the index of the emitted event before which they belong
        self._released: list[tuple[int, Iterator[Event]]] = []

    def prepare(self, event: binlog.XaPrepare, held: HeldTransaction, executed: Executed) -> list[Event]:
        """Keep a transaction from its XA PREPARE on; return the event that lists it, if it has captured rows."""
        xid, first, held.time_us = event.xid, held.first, event.time * 1_000_000
        self._drop(xid)  # the progress may list it although it is read again: its position is before the XA PREPARE
        self._held[xid] = held
        self._size += held.size
        if self._size > _MEMORY_BYTES:
            largest = max(self._held.values(), key=lambda each: each.size)
            self._size -= largest.size
            largest.move_to_file()
        if held.is_empty:
            return []
        self._listed.add(xid)
        gtid = first.gtid if isinstance(first, binlog.Gtid) else ""
        return [Prepared(xid, gtid, executed.take(), first.file, first.start, held.time_us)]

    async def decide(
        self, outcome: binlog.Query, on_doubt: OnDoubt, *, skipped: bool = False
    ) -> tuple[HeldTransaction | None, list[Event]]:
        """Handle XA COMMIT or XA ROLLBACK; return the transaction if it is committed and has captured rows.

        Also return the event that unlists the transaction, if it was listed. Raises SourceRefused if the binlog no
        longer has the transaction. If there is no server to read it from, or if the XA COMMIT is skipped, reports a
        doubt instead.
        """
        _, verb, xid = outcome.query.decode().split(None, 2)
        held = None
        if verb.upper() == "ROLLBACK":
            self._drop(xid)
        else:
            try:
                held = await self._take(xid, outcome, on_doubt)
            except SourceRefused as error:
                if not (skipped and error.is_lasting):
                    raise
                on_doubt(doubts.xa_commit(outcome, xid))
            if held is not None:
                held.offsets = {"start": outcome.start, "end": outcome.end}
        listed = xid in self._listed
        self._listed.discard(xid)
        return held if held and not held.is_empty else None, [Decided(xid)] if listed else []

    async def _take(self, xid: str, commit: binlog.Query, on_doubt: OnDoubt) -> HeldTransaction | None:
        if held := self._held.pop(xid, None):
            self._size -= held.size
            return held
        if self._log is None:
            on_doubt(doubts.xa_commit(commit, xid))
            return None
        if xid not in self._unread:
            found = await self._log.search(xid, commit)
            self._unread = {x: each for x, each in (found | self._unread).items() if x not in self._held}
        unread = self._unread.pop(xid)
        return await self._log.read(unread) if unread else None

    def _drop(self, xid: str) -> None:
        self._unread.pop(xid, None)
        if held := self._held.pop(xid, None):
            self._size -= held.size

    def release(self, held: HeldTransaction, present: Mapping[str, Table], out: list[Event]) -> None:
        """Let `spliced` insert the rows of a transaction at the end of `out`: they may be larger than the memory."""
        self._released.append((len(out), held.release(present)))

    def spliced(self, events: list[Event]) -> Iterable[Event]:
        """Return emitted events, with the released rows where they belong; rows after them are dropped."""
        if not self._released:
            return events
        released, self._released = [each for each in self._released if each[0] <= len(events)], []
        return _spliced(events, released)

    def open(self) -> Iterator[tuple[str, int]]:
        """Yield XID and time (µs since the epoch) of each listed transaction."""
        for xid in self._listed:
            known = self._held.get(xid) or self._unread.get(xid)
            if known is not None:
                yield xid, known.time_us

    def held(self) -> Iterator[HeldTransaction]:
        """Yield the held transactions that have captured rows."""
        return (each for each in self._held.values() if not each.is_empty)


def _spliced(events: list[Event], insertions: list[tuple[int, Iterator[Event]]]) -> Iterator[Event]:
    """Yield events, with others inserted before the events at these indexes."""
    start = 0
    for index, inserted in insertions:
        yield from events[start:index]
        yield from inserted
        start = index
    yield from events[start:]
