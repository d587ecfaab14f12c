"""T1: compressed transactions of MySQL (TRANSACTION_PAYLOAD) are read, or refused if they are damaged."""

from collections.abc import Callable, Sequence
from itertools import permutations

import pytest
import zstandard

from databus_binlog import CorruptEvent, Decoder, Rows, UnknownEvent, Xid

PAYLOAD_SIZE, COMPRESSION, UNCOMPRESSED_SIZE = 1, 2, 3
ZSTD, NONE = 0, 255
Field = tuple[int, int]


def zstd(data: bytes) -> bytes:
    """Compress data into one frame of zstd."""
    return zstandard.ZstdCompressor().compress(data)


def lenenc(number: int) -> bytes:
    """Encode a number as a length-encoded integer."""
    return bytes([number]) if number < 251 else b"\xfd" + number.to_bytes(3, "little")


@pytest.fixture
def transaction(wire) -> Callable[[int], bytes]:
    """Build the events of a transaction with this many inserts, without checksums, as a payload contains them."""

    def run(rows: int) -> bytes:
        inserts = [wire.inserted(f"00 {number:08x}") for number in range(rows)]
        table = wire.table("03", extra="010180")
        events = [event for insert in inserts for event in (table, insert)]
        events.append(wire.event(16, (77).to_bytes(8, "little")))
        return b"".join(map(wire.bare, events))

    return run


@pytest.fixture
def payload(wire) -> Callable[..., bytes]:
    """Build a TRANSACTION_PAYLOAD event from its content and the types and values of its fields."""

    def run(content: bytes, fields: Sequence[Field] = ()) -> bytes:
        head = b"".join(bytes([kind, len(lenenc(value))]) + lenenc(value) for kind, value in fields)
        return wire.event(40, head + b"\0" + content)

    return run


def numbers(events) -> list[bytes]:
    """Return the inserted numbers."""
    return [image[0] for event in events if isinstance(event, Rows) for image in event.images()]


@pytest.mark.parametrize("compression", [ZSTD, NONE])
def test_t1_fields_may_come_in_any_order(decode, transaction, payload, compression):
    content = transaction(50)
    stored = zstd(content) if compression == ZSTD else content
    fields = [(PAYLOAD_SIZE, len(stored)), (COMPRESSION, compression), (UNCOMPRESSED_SIZE, len(content))]
    for order in permutations(fields):
        *rows, xid = decode(payload(stored, order))
        assert len(numbers(rows)) == 50
        assert isinstance(xid, Xid)


def test_t1_fields_are_optional_and_unknown_ones_are_skipped(decode, transaction, payload, wire):
    content = transaction(3)
    assert len(numbers(decode(payload(content, [(COMPRESSION, NONE)])))) == 3
    assert len(numbers(decode(payload(zstd(content), [])))) == 3
    assert len(numbers(decode(wire.event(40, b"\x09\x03\xfb\xff\xfb\0" + zstd(content))))) == 3


def test_t1_the_announced_size_of_the_events_is_verified(decode, wire):
    """The first event's fields are copied from MySQL: compression zstd, 960 bytes of events, 451 bytes of payload."""
    ignorable = b"\1\0\0\0\x63\1\0\0\0" + (960).to_bytes(4, "little") + bytes(4) + b"\x80\0" + bytes(960 - 19)
    stored = zstd(ignorable)
    filler = 451 - len(stored) - 8
    stored += b"\x50\x2a\x4d\x18" + filler.to_bytes(4, "little") + bytes(filler)  # a frame without content
    assert not decode(
        wire.event(40, bytes.fromhex("020100 0303fcc003 0103fcc301 00") + stored)
    )  # the event inside is ignorable
    with pytest.raises(CorruptEvent, match="the size of its events differs from the announced size"):
        decode(wire.event(40, bytes.fromhex("020100 0303fcc103 0103fcc301 00") + stored))


def test_t1_the_content_may_have_several_zstd_frames(decode, transaction, payload):
    content = transaction(400)
    frames = b"".join(zstd(content[at : at + 1001]) for at in range(0, len(content), 1001))
    fields = [(COMPRESSION, ZSTD), (UNCOMPRESSED_SIZE, len(content)), (PAYLOAD_SIZE, len(frames))]
    assert len(numbers(decode(payload(frames, fields)))) == 400


def test_t1_pieces_of_any_size_give_the_same_events(wire, transaction, payload):
    content = transaction(20)
    stream = wire.packets(wire.head(), payload(zstd(content), [(PAYLOAD_SIZE, len(zstd(content)))]))
    expected = list(Decoder().feed(stream))
    assert len(numbers(expected)) == 20
    for size in range(1, 100):
        decoder = Decoder()
        pieces = [decoder.feed(stream[at : at + size]) for at in range(0, len(stream), size)]
        assert [event for piece in pieces for event in piece] == expected
        assert not decoder.pending


@pytest.mark.parametrize("compression", [ZSTD, NONE])
@pytest.mark.parametrize("rows", [1, 20, 3000])
def test_t1_a_transaction_with_a_wrong_checksum_has_no_commit(wire, transaction, payload, compression, rows):
    content = transaction(rows)
    stored = zstd(content) if compression == ZSTD else content
    event = bytearray(payload(stored, [(COMPRESSION, compression)]))
    event[-1] ^= 1
    decoder = Decoder(file="binlog.000001")
    decoder.feed(wire.packets(wire.head()))
    found = []
    with pytest.raises(CorruptEvent, match=r"TRANSACTION_PAYLOAD event at binlog\.000001:\d+ .* wrong checksum"):
        while True:
            found += decoder.feed(wire.packets(bytes(event)) if not found else b"")
    assert len(numbers(found)) <= rows
    assert not any(isinstance(event, Xid) for event in found)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda content: (zstd(content)[:-9], [(UNCOMPRESSED_SIZE, len(content))]), "differs from the announced size"),
        (lambda content: (content[:-1], [(COMPRESSION, NONE)]), "it ends inside an event"),
        (
            lambda content: (content, [(COMPRESSION, NONE), (PAYLOAD_SIZE, len(content) + 1)]),
            "differs from the announced size",
        ),
        (lambda content: (content, [(COMPRESSION, ZSTD)]), "it can't be decompressed"),
        (lambda content: (content, [(COMPRESSION, 1)]), "compression 1 is not known"),
        (lambda content: (zstd(content) + b"more", []), "it can't be decompressed"),
    ],
)
def test_t1_a_malformed_transaction_is_an_error(decode, transaction, payload, damage, message):
    with pytest.raises(CorruptEvent, match=message):
        decode(payload(*damage(transaction(10))))


def test_t1_a_transaction_with_malformed_fields_is_an_error(wire, decode):
    for body in (b"\x02\x01", b"\x02\x01\x00", b"\x01\x03\xfc", b"\x09\x3f" + bytes(10), b"\x02\x01\x00" * 100):
        with pytest.raises(CorruptEvent, match="TRANSACTION_PAYLOAD"):
            decode(wire.event(40, body))


def test_t1_a_compressed_transaction_inside_another_one_is_an_error(wire, decode, transaction, payload):
    inside = wire.bare(payload(zstd(transaction(1))))
    with pytest.raises(UnknownEvent, match=r"event type 40 \(TRANSACTION_PAYLOAD\)"):
        decode(payload(zstd(inside)))


def test_t1_an_exception_in_describe_is_raised_unchanged(wire, transaction, payload):
    def describe(_: object) -> None:
        raise KeyError("describe")

    decoder = Decoder(describe=describe)
    decoder.feed(wire.packets(wire.head()))
    with pytest.raises(KeyError, match="describe"):
        decoder.feed(wire.packets(payload(zstd(transaction(2)))))
