"""Receives a binlog dump (COM_BINLOG_DUMP): socket → reused buffer → decoder → events, with bounded memory."""

from __future__ import annotations

import asyncio
from collections import deque

from databus_binlog import commands
from databus_binlog.decoder import Decoder
from databus_binlog.errors import Disconnected
from databus_binlog.events import Events

BUFFER_SIZE = 1 << 18
GATHER_SECONDS = 0.001  #: small pieces that arrive within this time are read together


class EventStream(asyncio.BufferedProtocol):
    """An asynchronous iterator of Events. Each has some or all of the events that one read of the socket completed.

    backlog: bytes of decoded but unread events above which the stream stops reading from the socket, until at
        most half as many are unread.
    silence: seconds without any byte, even of a heartbeat, after which the connection counts as lost.
    """

    def __init__(self, transport: asyncio.Transport, decoder: Decoder, *, backlog: int, silence: float) -> None:
        self._transport = transport
        self._decoder = decoder
        self._limit = backlog
        self._silence = silence
        self._buffer = memoryview(bytearray(BUFFER_SIZE))
        self._ready: deque[Events] = deque()
        self._unread = 0
        self._failure: BaseException | None = None
        self._loop = asyncio.get_running_loop()
        self._consumer: asyncio.Future[None] | None = None  # set while the consumer waits for bytes or a disconnection
        self._last_arrival = self._loop.time()
        self._watchdog = self._loop.call_later(silence, self._watch)
        self._reading = True
        self._full = False  # the consumer is far behind, or the decoder has more events to return
        self._gathering = False  # reading is paused until GATHER_SECONDS have passed
        self._lost = asyncio.Event()
        self._closed = False

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> Events:
        while not self._ready:
            if self._decoder.more:
                self._decode(b"", 0)
            elif self._failure:
                raise self._failure
            elif self._decoder.finished or self._lost.is_set():
                raise StopAsyncIteration
            else:
                await self._next_arrival()
        events = self._ready.popleft()
        self._unread -= len(events.data)
        self._regulate()
        return events

    @property
    def drained(self) -> bool:
        """Whether all received events were returned: the next call of `__anext__` has to wait."""
        return not self._ready and self._decoder.drained

    def _regulate(self) -> None:
        """Pause reading while `_full` or `_gathering` is true, otherwise continue."""
        self._full = self._decoder.more or self._unread > (self._limit // 2 if self._full else self._limit)
        reading = not (self._full or self._gathering)
        if reading == self._reading or self._lost.is_set():
            return
        self._reading = reading
        if reading:
            self._last_arrival = self._loop.time()
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def _gather(self) -> None:
        """Let bytes gather for a moment: reading many small pieces costs more than decoding the events in them.

        Do nothing with semi-sync: the server's clients wait until their events are decoded.
        """
        if self._gathering or self._decoder.semi_sync:
            return
        self._gathering = True
        self._loop.call_later(GATHER_SECONDS, self._gathered)

    def _gathered(self) -> None:
        self._gathering = False
        self._regulate()

    async def _next_arrival(self) -> None:
        self._consumer = self._loop.create_future()
        try:
            await self._consumer
        finally:
            self._consumer = None

    def _wake(self) -> None:
        if self._consumer and not self._consumer.done():
            self._consumer.set_result(None)

    def _watch(self) -> None:
        """Check from time to time how long the server was silent: a timer per wait would cost more than decoding."""
        silent = 0.0 if self._full else self._loop.time() - self._last_arrival
        if silent >= self._silence:
            self._fail(Disconnected(f"the server has sent nothing for {self._silence:g} s, not even a heartbeat"))
        else:
            self._watchdog = self._loop.call_later(self._silence - silent, self._watch)

    async def close(self) -> None:
        """Disconnect. Iteration ends after the events that have arrived."""
        self._closed = True
        self._transport.abort()
        await self._lost.wait()

    # --- called by asyncio

    def get_buffer(self, sizehint: int) -> memoryview:  # asyncio's signature
        """Return the whole buffer: the decoder has copied the bytes that it could not decode yet."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Decode what arrived. A part of a long event also counts as a sign of life."""
        now = self._loop.time()
        if nbytes < BUFFER_SIZE // 2 and now - self._last_arrival < GATHER_SECONDS:
            self._gather()
        self._last_arrival = now
        self._decode(self._buffer, nbytes)
        self._wake()

    def _decode(self, data: bytes | memoryview, size: int) -> None:
        """Decode; stop reading while the consumer is far behind, or while the decoder has more events to return."""
        try:
            events = self._decoder.feed(data, size)
        except Exception as failure:  # noqa: BLE001 - __anext__ raises it; asyncio would only log it and disconnect
            self._fail(failure)
            return
        if events:
            self._ready.append(events)
            self._unread += len(events.data)
        self._regulate()
        if self._decoder.failure:
            self._fail(self._decoder.failure)
        elif self._decoder.finished:
            self._transport.close()
        elif ack := self._decoder.take_ack():
            self._transport.write(commands.packet(commands.semi_sync_ack(*ack)))

    def eof_received(self) -> None:
        """Let the transport close itself."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Report the loss to the consumer, after the events it has not read yet."""
        self._lost.set()
        self._watchdog.cancel()
        if not (self._closed or self._failure or self._decoder.finished):
            self._failure = Disconnected(f"connection to the server lost: {exc or 'the server closed it'}")
        self._wake()

    def _fail(self, failure: BaseException) -> None:
        self._failure = failure
        self._wake()
        self._transport.abort()
