"""The stream of a SELECT over a simulated socket: how much it reads, and how it ends."""

import asyncio

import pytest

from databus_binlog import Disconnected, ServerRefused
from databus_binlog.errors import CorruptResult
from databus_binlog.result_set import ResultSet
from databus_binlog.select import SelectStream
from unit.binlog.result_sets import answer, head, packets, row

KILOBYTE = row(b"x" * 1021)


class Socket(asyncio.Transport):
    """A transport that records what the stream does with it."""

    def __init__(self) -> None:
        super().__init__()
        self.open, self.reading = True, True

    def pause_reading(self) -> None:
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True

    def abort(self) -> None:
        self.open = False


def stream_of(*, silence: float = 30.0) -> tuple[Socket, SelectStream]:
    socket = Socket()
    result = ResultSet(batch=1 << 16, deprecate_eof=False)
    return socket, SelectStream(socket, result, refused=lambda *error: ServerRefused(str(error)), silence=silence)


def receive(stream: SelectStream, data: bytes) -> None:
    """Call the stream as asyncio does when these bytes have arrived."""
    for at in range(0, len(data), 1 << 18):
        part = data[at : at + (1 << 18)]
        stream.get_buffer(-1)[: len(part)] = part
        stream.buffer_updated(len(part))


async def test_reading_pauses_while_more_than_a_mebibyte_is_unread() -> None:
    socket, stream = stream_of()
    data = answer(1, [KILOBYTE] * 5000)
    sent, most, rows = 0, 0, 0
    while not stream.complete:
        while socket.reading and not stream.complete:
            receive(stream, data[sent : sent + 1000])
            sent += 1000
        most = max(most, sent // 1024 - rows)
        rows += (await anext(stream)).count
    assert 1024 <= most < 1024 + 128
    assert rows + sum([batch.count async for batch in stream]) == 5000


async def test_reading_is_resumed_when_the_server_has_sent_everything() -> None:
    socket, stream = stream_of()
    data = answer(1, [KILOBYTE] * 2000)
    receive(stream, data[:-200])
    assert not socket.reading
    receive(stream, data[-200:])  # asyncio may have read it already
    assert socket.reading
    assert sum([batch.count async for batch in stream]) == 2000


async def test_complete_batches_before_an_error_are_returned_first() -> None:
    _, stream = stream_of()
    receive(stream, packets(*head(1), *[KILOBYTE] * 100, b"\xff\x28\x04#HY000lost"))
    assert (await anext(stream)).count == 64
    with pytest.raises(ServerRefused, match=r"1064, 'lost'"):
        await anext(stream)
    assert stream.complete


async def test_damaged_bytes_end_the_connection() -> None:
    socket, stream = stream_of()
    waiting = asyncio.create_task(anext(stream))
    await asyncio.sleep(0)
    receive(stream, packets(*head(2), row(b"1")))
    with pytest.raises(CorruptResult, match="cut off"):
        await waiting
    assert (socket.open, stream.complete) == (False, False)


async def test_a_lost_connection_is_an_error_only_before_the_end() -> None:
    _, stream = stream_of()
    waiting = asyncio.create_task(anext(stream))
    await asyncio.sleep(0)
    receive(stream, packets(*head(1), KILOBYTE))
    stream.connection_lost(None)
    with pytest.raises(Disconnected, match="the server closed it"):
        await waiting

    _, stream = stream_of()
    receive(stream, answer(1, [KILOBYTE]))
    stream.connection_lost(ConnectionResetError("reset"))
    assert [batch.count async for batch in stream] == [1]
    assert not stream.complete


async def test_a_silent_connection_is_lost_but_a_part_of_a_row_ends_the_silence() -> None:
    _, stream = stream_of(silence=0.2)
    receive(stream, packets(*head(1)))
    waiting = asyncio.create_task(anext(stream))
    started = asyncio.get_running_loop().time()
    for byte in packets(*head(1), KILOBYTE)[len(packets(*head(1))) :][:8]:
        receive(stream, bytes([byte]))
        await asyncio.sleep(0.05)  # eight bytes take 0.4 s, longer than the permitted silence
    with pytest.raises(Disconnected, match=r"sent nothing for 0\.2 s"):
        await waiting
    assert asyncio.get_running_loop().time() - started >= 0.5
