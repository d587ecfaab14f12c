"""A stream over a simulated socket: how much it reads, which events it acknowledges, how it ends."""

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
    """Call the stream as asyncio does when these bytes have arrived."""
    buffer = stream.get_buffer(-1)
    buffer[: len(data)] = data
    stream.buffer_updated(len(data))


def compressed(wire, rows: int) -> bytes:
    """Return a TRANSACTION_PAYLOAD event with rows of 1 KB, which zstd has compressed to almost nothing."""
    events = wire.table("fc", "02", "02013f"), wire.inserted("00 e803" + "78" * 1000)
    return wire.event(40, b"\0" + zstandard.compress(b"".join(map(wire.bare, events)) * rows))


async def test_reading_pauses_while_the_consumer_is_behind(wire):
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


async def test_events_before_an_error_are_returned_first_and_nothing_is_acknowledged(wire):
    socket, stream = stream_of(semi_sync=True)
    xid = wire.event(16, bytes(8))
    # The server wants an acknowledgement of each event. The last event is an incident.
    payloads = [b"\0\xef\1" + event for event in (wire.head(), xid, wire.event(26, b"\1\0\4lost"))]
    receive(stream, b"".join(map(wire.packet, payloads)))
    assert [type(event).__name__ for event in await anext(stream)] == ["FormatDescription", "Xid"]
    with pytest.raises(Incident):
        await anext(stream)
    assert (socket.open, socket.written) == (False, b"")


async def test_the_last_event_for_which_the_server_waits_is_acknowledged(wire):
    socket, stream = stream_of(semi_sync=True, file="binlog.000001", offset=4)
    waited_for, later = (wire.event(16, bytes(8), next_position=end) for end in (5000, 5031))
    events = (b"\0\xef\0", wire.head()), (b"\0\xef\1", waited_for), (b"\0\xef\0", later)
    receive(stream, b"".join(wire.packet(status + event) for status, event in events))
    assert socket.written == b"\x16\0\0\0\xef" + (5000).to_bytes(8, "little") + b"binlog.000001"


async def test_a_compressed_transaction_is_acknowledged_only_when_all_of_it_has_arrived(wire):
    socket, stream = stream_of(semi_sync=True)
    data = wire.packet(b"\0\xef\0" + wire.head()) + wire.packet(b"\0\xef\1" + compressed(wire, 10))
    receive(stream, data[:-1])
    assert socket.written == b""
    receive(stream, data[-1:])
    assert socket.written[4:5] == b"\xef"


async def test_a_silent_connection_is_lost_but_a_part_of_an_event_ends_the_silence(wire):
    socket, stream = stream_of(silence=0.2)
    receive(stream, wire.packets(wire.head()))
    await anext(stream)
    waiting = asyncio.create_task(anext(stream))
    started = asyncio.get_running_loop().time()
    for byte in wire.packets(wire.event(160, b"x" * 20))[:8]:
        receive(stream, bytes([byte]))
        await asyncio.sleep(0.05)  # eight bytes take 0.4 s, longer than the permitted silence
    with pytest.raises(Disconnected, match="not even a heartbeat"):
        await waiting
    assert asyncio.get_running_loop().time() - started >= 0.5
    assert not socket.open


async def test_an_exception_in_describe_is_raised_unchanged_by_each_later_anext(wire):
    def describe(_: object) -> None:
        json.loads("{")

    _, stream = stream_of(describe=describe)
    receive(stream, wire.packets(wire.head(), wire.table("03", extra="010100"), wire.inserted("00 01000000")))
    await anext(stream)
    for _ in range(2):
        with pytest.raises(json.JSONDecodeError):
            await anext(stream)


@pytest.mark.parametrize("semi_sync", [False, True])
async def test_small_pieces_are_gathered_except_in_semi_sync(wire, semi_sync):
    socket, stream = stream_of(semi_sync=semi_sync)
    for event in (wire.head(), wire.event(16, bytes(8)), wire.event(16, bytes(8))):
        receive(stream, wire.packet((b"\0\xef\0" if semi_sync else b"\0") + event))
    assert socket.reading.is_set() == semi_sync
    async with asyncio.timeout(5):
        await socket.reading.wait()
