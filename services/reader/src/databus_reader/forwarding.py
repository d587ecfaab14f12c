"""Sends what the binlog has, and what backfills insert between its transactions, to the publisher."""

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice

from databus_binlog import Event as BinlogEvent
from databus_binlog import Events, Position, TableMap
from databus_binlog import events as binlog
from databus_binlog.session import Stream
from databus_changes.fast_path import FastPath
from databus_changes.translate import Translator
from databus_core.errors import FatalError
from databus_core.events import Event
from databus_core.metrics import reader as metrics
from databus_core.runtime import Health
from databus_reader.backfill.backfills import Backfills
from databus_reader.cascade_loads import CascadeLoads
from databus_reader.entries import EntryWriter
from databus_reader.open_transactions import OpenTransactions
from databus_reader.source.switching import Switching

#: after this time without events to send, a heartbeat is sent if the position has changed
_POSITION_SECONDS = 1.0
#: how many events are forwarded at once
_EVENTS = 1000
#: The stream does not wait longer until a read view is open, for instance because of a lock: it would fall behind.
_HOLD_SECONDS = 10.0
#: how long an error that stops the reader waits for the publisher
_PUBLISH_SECONDS = 30.0


class Forwarding:
    """Forwards one stream."""

    def __init__(
        self,
        stream: Stream,
        translator: Translator,
        fast_path: FastPath | None,
        backfills: Backfills,
        cascades: CascadeLoads,
        entries: EntryWriter,
        switching: Switching,
        health: Health,
        ahead_us: int,
        log_end: Position | None,
    ) -> None:
        """`fast_path`: takes ordinary transactions past the translator; None: each event is an object.

        `ahead_us`: how far the server's clock is ahead of ours. `log_end`: a position before which it may skip.
        """
        self._stream = stream
        self._translator = translator
        self._fast_path = fast_path
        self._backfills = backfills
        self._cascades = cascades
        self._entries = entries
        self._switching = switching
        self._health = health
        self._ahead_us, self._log_end = ahead_us, log_end
        #: when the last events arrived that were waited for, in µs since the epoch; 0: not known
        self._arrived_us = 0
        #: when the last transaction was committed, by the server's clock
        self._committed_us = translator.reached.time_us
        self._open_transactions = OpenTransactions()
        self._last_sent = time.monotonic()
        #: the next events of the stream, while they are waited for
        self._arriving: asyncio.Task[Events] | None = None

    async def run(self, *, until_idle: bool, follow: bool) -> None:
        """Forward until the stream ends; with `until_idle`, a stream that would `follow` the log ends at its end.

        A heartbeat, when all backfills have ended, means that the log's end is reached. A stream that does not follow
        ends by itself: there, MySQL sends a heartbeat behind transactions that it leaves out, and then the others.
        """
        try:
            while True:
                decoded = await self._next()
                self._health.beat()
                if decoded is None:
                    await self._insert()
                    await self._entries.flush()
                    continue
                last = await self._forward(decoded)
                is_idle = isinstance(last, binlog.Heartbeat)
                if is_idle:
                    await self._entries.report()
                self._measure(len(decoded), last)
                self._open_transactions.report(self._translator.prepared.open())
                await self._switching.check()
                if until_idle and follow and is_idle and not self._backfills.unfinished:
                    return
        except StopAsyncIteration:
            if self._fast_path and (rest := self._fast_path.rest()):  # a transaction without its end, which is lost
                await self._translate(rest, self._fast_path.tables)
        finally:
            if self._arriving:
                self._arriving.cancel()
                await asyncio.gather(self._arriving, return_exceptions=True)

    async def _next(self) -> Events | None:
        """Wait for events; return None if a backfill may have something to insert before. Raises StopAsyncIteration."""
        if self._arriving is None:
            if not self._backfills.active:  # a new request can wait for the next heartbeat
                return await self._take()
            self._arriving = asyncio.create_task(self._take())
            self._arriving.add_done_callback(lambda _: self._backfills.wake.set())
        await self._backfills.wake.wait()
        self._backfills.wake.clear()
        if not self._arriving.done():
            return None
        arrived, self._arriving = self._arriving, None
        return arrived.result()

    async def _take(self) -> Events:
        """Wait for events. Note when they arrived; those that are there already may have waited for a long time."""
        waits = self._stream.drained
        events = await anext(self._stream)
        if waits:
            self._arrived_us = time.time_ns() // 1000
        return events

    async def _forward(self, decoded: Events) -> BinlogEvent | None:
        """Send what a chunk has; return its last event, or None if that is one of an ordinary transaction."""
        if self._fast_path and not self._backfills.active:
            last = await self._forward_fast(self._fast_path, decoded)
        else:
            chunk = self._fast_path.release(decoded) if self._fast_path else list(decoded)
            tables = self._fast_path.tables if self._fast_path else decoded.tables
            last = chunk[-1]
            if self._backfills.active:
                for part in _transactions(chunk):
                    await self._translate(part, tables)
                    await self._insert()
            else:
                await self._translate(chunk, tables)
        self._note_read(last)
        due = time.monotonic() - self._last_sent >= _POSITION_SECONDS
        if due and (heartbeat := self._translator.reached.take_heartbeat()):
            self._last_sent = time.monotonic()
            await self._entries.write([heartbeat])
        if self._stream.drained:
            await self._entries.flush()
        return last

    async def _forward_fast(self, fast_path: FastPath, decoded: Events) -> BinlogEvent | None:
        """Send ordinary transactions as they are, and translate the other groups."""
        last: BinlogEvent | None = None
        fast_path.begin(decoded)
        while not fast_path.done:
            taken = fast_path.take(self._entries.room)
            if taken is None and not fast_path.done:
                events = fast_path.group()
                last = events[-1]
                await self._translate(events, fast_path.tables)
                continue
            last = None
            if taken is not None and taken.events:
                self._translator.rows += taken.rows
                self._translator.transactions += taken.transactions
                self._last_sent = time.monotonic()
                await self._entries.write_encoded(taken.encoded, taken.events)
        return last

    def _note_read(self, last: BinlogEvent | None) -> None:
        """Note up to which moment everything was read: the last commit, or when the server had no more.

        A server that finds the position by GTIDs sends heartbeats also while it leaves out what is before it.
        """
        if (committed := self._translator.reached.time_us) != self._committed_us:
            self._committed_us, self._log_end = committed, None
            self._entries.has_read_to(committed - self._ahead_us)
        if isinstance(last, binlog.Heartbeat):
            if self._log_end and Position("", last.file, last.end).log_order >= self._log_end.log_order:
                self._log_end = None
            if self._log_end is None and self._arrived_us:
                self._entries.has_read_to(self._arrived_us)

    def _measure(self, events: int, last: BinlogEvent | None) -> None:
        translator, place = self._translator, self._translator.reached.place
        metrics.EVENTS.inc(events)
        metrics.ROWS.inc(translator.rows)
        metrics.TRANSACTIONS.inc(translator.transactions)
        translator.rows = translator.transactions = 0
        if last is not None:
            metrics.BINLOG_OFFSET.set(last.end)
        elif place is not None:  # the end of an ordinary transaction
            metrics.BINLOG_OFFSET.set(place[1])

    async def _translate(self, events: Sequence[BinlogEvent], tables: Mapping[str, TableMap]) -> None:
        try:
            translated = await self._translator.translate(events, tables)
        except FatalError:
            await self._send(self._translator.rest())
            await self._publish()
            raise
        await self._send(translated)

    async def _send(self, translated: Iterable[Event]) -> None:
        remaining = iter(translated)
        while part := list(islice(remaining, _EVENTS)):  # the rows of an XA transaction may be larger than the memory
            self._backfills.observe(part)
            self._last_sent = time.monotonic()
            await self._entries.write(await self._cascades.follow(part))

    async def _publish(self) -> None:
        """Wait until everything that was sent is published, before the reader stops; not for a publisher that hangs."""
        await self._entries.flush()
        with suppress(TimeoutError):
            async with asyncio.timeout(_PUBLISH_SECONDS):
                await self._entries.wait_until_published()

    async def _insert(self) -> None:
        """Insert what the backfills have, if this is a boundary. Stay here while they need it."""
        place = self._translator.own.place
        holds = True
        while holds and place is not None and self._backfills.is_due(place):
            async for events in self._backfills.insert(place, self._translator.own.boundary()):
                self._last_sent = time.monotonic()
                await self._entries.write(await self._cascades.follow(events))
            holds = await self._hold()

    async def _hold(self) -> bool:
        """Wait while backfills open read views whose place the stream must not pass. Return whether any did."""
        if not self._backfills.holding:
            return False
        await self._entries.flush()
        try:
            async with asyncio.timeout(_HOLD_SECONDS):
                while windows := self._backfills.holding:
                    await windows[0].known.wait()
        except TimeoutError:
            self._backfills.release()
        return True


def _transactions(events: Sequence[BinlogEvent]) -> Iterator[Sequence[BinlogEvent]]:
    """Cut events after each that may end a transaction."""
    first = 0
    for index, event in enumerate(events, 1):
        if isinstance(event, binlog.Xid | binlog.Query | binlog.XaPrepare):
            yield events[first:index]
            first = index
    if first < len(events):
        yield events[first:]
