"""The receiving end of a dump: socket → reused buffer → decoder → events, with bounded memory."""

from __future__ import annotations

import asyncio
from collections import deque

from databus_binlog import commands
from databus_binlog.decoder import Decoder
from databus_binlog.errors import Disconnected
from databus_binlog.events import Events

BUFFER_SIZE = 1 << 18


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
        self._paused = False
        self._lost = asyncio.Event()
        self._closed = False

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> Events:
        while not self._ready:
            if self._decoder.more:
                self._decode(b"", 0)
                self._read_on()
            elif self._failure:
                raise self._failure
            elif self._decoder.finished or self._lost.is_set():
                raise StopAsyncIteration
            else:
                await self._next_arrival()
        events = self._ready.popleft()
        self._unread -= len(events.data)
        self._read_on()
        return events

    def _read_on(self) -> None:
        if self._paused and self._unread <= self._limit // 2 and not self._decoder.more and not self._lost.is_set():
            self._paused = False
            self._heard = self._loop.time()
            self._transport.resume_reading()

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
        quiet = 0.0 if self._paused else self._loop.time() - self._heard
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
        self._heard = self._loop.time()
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
        if not self._paused and (self._decoder.more or self._unread > self._limit):
            self._paused = True
            self._transport.pause_reading()
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
