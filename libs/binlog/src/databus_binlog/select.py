"""Receives the rows of a SELECT: socket → reused buffer → compiled `ResultSet` → batches of packed rows.

asyncmy logs in and runs all other statements; its protocol is replaced while rows arrive.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from databus_binlog.driver import give_back, send, take_over
from databus_binlog.errors import BinlogError, Disconnected
from databus_binlog.result_set import ResultSet
from databus_binlog.row_batch import Conversion, RowBatch

_QUERY = b"\x03"  # COM_QUERY
_BUFFER_SIZE = 1 << 18
#: bytes of unread rows above which the stream stops reading from the socket, until at most half as many are unread
_BACKLOG = 1 << 20


class SelectStream(asyncio.BufferedProtocol):
    """An asynchronous iterator of the batches of one result set; `open_select` makes it.

    refused: returns the error for a code and a message of the server. silence: seconds without any byte after which
    the connection counts as lost.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        result: ResultSet,
        *,
        refused: Callable[[int, str], BinlogError],
        silence: float,
    ) -> None:
        self._transport = transport
        self._result = result
        self._refused = refused
        self._silence = silence
        self._buffer = memoryview(bytearray(_BUFFER_SIZE))
        self._ready: deque[RowBatch] = deque()
        self._unread = 0
        self._reading = True
        self._failure: BaseException | None = None
        self._consumer: asyncio.Future[None] | None = None  # set while the consumer waits for bytes or a disconnection
        self._lost = asyncio.Event()

    def __aiter__(self) -> SelectStream:
        return self

    async def __anext__(self) -> RowBatch:
        while not self._ready:
            if self._failure:
                raise self._failure
            if self._result.complete:
                raise StopAsyncIteration
            await self._next_arrival()
        batch = self._ready.popleft()
        self._unread -= len(batch.rows)
        self._regulate()
        return batch

    @property
    def complete(self) -> bool:
        """Whether the result set has ended, so that the server can receive the next command."""
        return self._result.complete and not self._lost.is_set()

    async def close(self) -> None:
        """Disconnect."""
        self._transport.abort()
        await self._lost.wait()

    def _regulate(self) -> None:
        """Pause reading while the consumer is behind."""
        reading = self._result.complete or self._unread <= (_BACKLOG if self._reading else _BACKLOG // 2)
        if reading == self._reading or self._lost.is_set():
            return
        self._reading = reading
        if reading:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    async def _next_arrival(self) -> None:
        self._consumer = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(self._silence):
                await self._consumer
        except TimeoutError as error:
            text = f"the server has sent nothing for {self._silence:g} s: check the server and long DDL statements"
            raise Disconnected(text) from error
        finally:
            self._consumer = None

    def _wake(self) -> None:
        if self._consumer and not self._consumer.done():
            self._consumer.set_result(None)

    # --- called by asyncio

    def get_buffer(self, sizehint: int) -> memoryview:  # asyncio's signature
        """Return the whole buffer: the result set has copied the bytes that it could not read yet."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Read what arrived."""
        try:
            batches = self._result.feed(self._buffer, nbytes)
        except Exception as failure:  # noqa: BLE001 - __anext__ raises it; asyncio would only log it and disconnect
            self._failure = failure
            self._transport.abort()
            self._wake()
            return
        self._ready += batches
        self._unread += sum(len(batch.rows) for batch in batches)
        self._regulate()
        if self._result.refusal:
            self._failure = self._refused(*self._result.refusal)
        self._wake()

    def eof_received(self) -> None:
        """Let the transport close itself."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Report the loss to the consumer, after the rows it has not read yet."""
        self._lost.set()
        if not (self._failure or self._result.complete):
            self._failure = Disconnected(f"connection to the server lost: {exc or 'the server closed it'}")
        self._wake()


def open_select(
    connection: Any,
    sql: str,
    conversions: Sequence[Conversion],
    *,
    batch: int,
    refused: Callable[[int, str], BinlogError],
    silence: float,
) -> SelectStream:
    """Send a SELECT on asyncmy's connection, which cannot be used before `close_select`. Raises DriverError."""
    result = ResultSet(conversions, batch=batch, deprecate_eof=connection._deprecate_eof)
    send(connection, _QUERY + sql.encode())
    return take_over(connection, partial(SelectStream, result=result, refused=refused, silence=silence))


async def close_select(connection: Any, stream: SelectStream) -> None:
    """Give the connection back to asyncmy, or disconnect if the server may still send rows."""
    if stream.complete:
        give_back(connection)
    else:
        await stream.close()
        connection.close()
