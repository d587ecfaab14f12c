"""A stream over a simulated socket: how much it reads, what it acknowledges, how it ends."""

import asyncio
import json

import pytest
import zstandard

from databus_binlog import Decoder, Disconnected, EventStream, Incident, Rows


class Socket(asyncio.Transport):
    """A transport that records what the stream does with it."""

    def __init__(self) -> None:
        super().__init__()
        self.open, self.written = True, b""
        self.reading = asyncio.Event()
        self.reading.set()

    def pause_reading(self) -> None:
        self.reading.clear()

    def resume_reading(self) -> None:
        self.reading.set()

    def write(self, data: bytes) -> None:
        self.written += data

    def abort(self) -> None:
        self.open = False

    close = abort


def stream_of(*, backlog: int = 1 << 20, silence: float = 30.0, **options: object) -> tuple[Socket, EventStream]:
    socket = Socket()
    return socket, EventStream(socket, Decoder(**options), backlog=backlog, silence=silence)


def receive(stream: EventStream, data: bytes) -> None:
    buffer = stream.get_buffer(-1)
    buffer[: len(data)] = data
    stream.buffer_updated(len(data))


def compressed(wire, rows: int) -> bytes:
    """Return a transaction of 1 KB rows that zstd compresses to almost nothing."""
    events = wire.table("fc", "02", "02013f"), wire.inserted("00 e803" + "78" * 1000)
    bare = b"".join(event[:9] + (len(event) - 4).to_bytes(4, "little") + event[13:-4] for event in events)
    return wire.event(40, b"\0" + zstandard.compress(bare * rows))


async def test_only_decoded_events_are_acknowledged(wire):
    socket, stream = stream_of(backlog=1 << 20)
    data = wire.packets(wire.head(), compressed(wire, 20_000))
    sent = 0

    async def send() -> None:
        nonlocal sent
        while sent < len(data):
            await socket.reading.wait()
            receive(stream, data[sent : sent + 200])
            sent += 200

    sending = asyncio.create_task(send())
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(sending), 0.5)
    assert sent < len(data) / 2
    rows = 0
    while rows < 20_000:
        rows += sum(isinstance(event, Rows) for event in await anext(stream))
    await sending
    assert rows == 20_000


async def test_events_before_an_error_come_first_and_are_not_acknowledged_with_it(wire):
    socket, stream = stream_of(semi_sync=True)
    xid = wire.event(16, bytes(8))
    wanted = [b"\0\xef\1" + event for event in (wire.head(), xid, wire.event(26, b"\1\0\4lost"))]
    receive(stream, b"".join(wire.packet(each) for each in wanted))
    assert [type(event).__name__ for event in await anext(stream)] == ["FormatDescription", "Xid"]
    with pytest.raises(Incident):
        await anext(stream)
    assert (socket.open, socket.written) == (False, b"")


async def test_an_acknowledgement_names_the_last_event_that_was_decoded(wire):
    socket, stream = stream_of(semi_sync=True, file="binlog.000001", offset=4)
    waited_for, other = (wire.event(16, bytes(8), next_position=end) for end in (5000, 5031))
    events = (b"\0\xef\0", wire.head()), (b"\0\xef\1", waited_for), (b"\0\xef\0", other)
    receive(stream, b"".join(wire.packet(head + event) for head, event in events))
    assert socket.written == b"\x16\0\0\0\xef" + (5000).to_bytes(8, "little") + b"binlog.000001"


async def test_a_compressed_transaction_is_acknowledged_when_all_of_it_is_decoded(wire):
    socket, stream = stream_of(semi_sync=True)
    data = wire.packet(b"\0\xef\0" + wire.head()) + wire.packet(b"\0\xef\1" + compressed(wire, 10))
    receive(stream, data[:-1])
    assert socket.written == b""
    receive(stream, data[-1:])
    assert socket.written[4:5] == b"\xef"


async def test_silence_is_a_lost_connection_and_half_an_event_is_not_silence(wire):
    socket, stream = stream_of(silence=0.2)
    receive(stream, wire.packets(wire.head()))
    await anext(stream)
    waiting = asyncio.create_task(anext(stream))
    started = asyncio.get_running_loop().time()
    for byte in wire.packets(wire.event(160, b"x" * 20))[:8]:
        receive(stream, bytes([byte]))
        await asyncio.sleep(0.05)  # the test is about this time
    with pytest.raises(Disconnected, match="not even a heartbeat"):
        await waiting
    assert asyncio.get_running_loop().time() - started >= 0.5
    assert not socket.open


async def test_the_error_of_a_hook_is_raised_unchanged(wire):
    def describe(_: object) -> None:
        json.loads("{")

    _, stream = stream_of(describe=describe)
    receive(stream, wire.packets(wire.head(), wire.table("03", extra="010100"), wire.inserted("00 01000000")))
    await anext(stream)
    for _ in range(2):
        with pytest.raises(json.JSONDecodeError):
            await anext(stream)


@pytest.mark.parametrize("semi_sync", [False, True])
async def test_small_pieces_gather_unless_a_commit_waits_for_them(wire, semi_sync):
    socket, stream = stream_of(semi_sync=semi_sync)
    for event in (wire.head(), wire.event(16, bytes(8)), wire.event(16, bytes(8))):
        receive(stream, wire.packet((b"\0\xef\0" if semi_sync else b"\0") + event))
    assert socket.reading.is_set() == semi_sync
    async with asyncio.timeout(5):
        await socket.reading.wait()
