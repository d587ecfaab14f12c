"""The receiving end of a dump: socket → reused buffer → decoder → events, with bounded memory."""

from __future__ import annotations

import asyncio
from collections import deque

from databus_binlog import commands
from databus_binlog.decoder import Decoder
from databus_binlog.errors import Disconnected
from databus_binlog.events import Events

BUFFER_SIZE = 1 << 18
GATHER_SECONDS = 0.001  #: pieces that come closer to each other, and are small, are read together


class EventStream(asyncio.BufferedProtocol):
    """Iterate over it for events, in pieces as they came from the socket.

    backlog: bytes of decoded but unread events after which the socket is left alone until half of them are read.
    silence: seconds without even a heartbeat after which the connection counts as lost.
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
        self._consumer: asyncio.Future[None] | None = None  # waits for bytes or the end
        self._heard = self._loop.time()
        self._watchdog = self._loop.call_later(silence, self._watch)
        self._reading = True
        self._full = False  # the consumer is behind
        self._gathering = False
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
        """Whether all received events were returned, so that the next call has to wait."""
        return not self._ready and self._decoder.drained

    def _regulate(self) -> None:
        """Read on, or leave the socket alone while the consumer is far behind or bytes gather."""
        self._full = self._decoder.more or self._unread > (self._limit // 2 if self._full else self._limit)
        reading = not (self._full or self._gathering)
        if reading == self._reading or self._lost.is_set():
            return
        self._reading = reading
        if reading:
            self._heard = self._loop.time()
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def _gather(self) -> None:
        """Let bytes gather for a moment: small pieces in quick succession cost more than the events in them.

        Not in semi-sync, where the server's clients wait for each piece.
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
        """Look once in a while how long it has been silent: a timer for each wait would cost more than the decoding."""
        quiet = 0.0 if self._full else self._loop.time() - self._heard
        if quiet >= self._silence:
            self._fail(Disconnected(f"nothing came from the server for {self._silence:g} s, not even a heartbeat"))
        else:
            self._watchdog = self._loop.call_later(self._silence - quiet, self._watch)

    async def close(self) -> None:
        """Hang up. Iteration ends after what has already come."""
        self._closed = True
        self._transport.abort()
        await self._lost.wait()

    # --- asyncio's side

    def get_buffer(self, sizehint: int) -> memoryview:  # asyncio's signature
        """Offer the whole buffer: the decoder keeps what it could not use yet."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Decode what came. Also the middle of a long event is a sign of life."""
        now = self._loop.time()
        if nbytes < BUFFER_SIZE // 2 and now - self._heard < GATHER_SECONDS:
            self._gather()
        self._heard = now
        self._decode(self._buffer, nbytes)
        self._wake()

    def _decode(self, data: bytes | memoryview, size: int) -> None:
        """Decode; stop reading while the consumer is far behind or has to fetch what one piece became."""
        try:
            events = self._decoder.feed(data, size)
        except Exception as failure:  # noqa: BLE001 - raised to the consumer; asyncio would only log it and hang up
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
        """Tell the consumer, after the events it has not read yet."""
        self._lost.set()
        self._watchdog.cancel()
        if not (self._closed or self._failure or self._decoder.finished):
            self._failure = Disconnected(f"connection to the server lost: {exc or 'it hung up'}")
        self._wake()

    def _fail(self, failure: BaseException) -> None:
        self._failure = failure
        self._wake()
        self._transport.abort()
