"""Fixtures that build events and packets as servers write them, and decode them, for tests without a server."""

import random
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from databus_binlog import Decoder, Events, Rows

FILES = Path(__file__).parents[2] / "fixtures" / "mariadb-binlog"

#: A test cuts a long stream at this many of its first offsets and at as many random ones; with --every-cut
#: (`make fuzz`) at every offset.
SAMPLED_CUTS = 200


@pytest.fixture
def cuts(request: pytest.FixtureRequest) -> Callable[[int], Sequence[int]]:
    """Choose the offsets at which a test cuts a stream of this size."""

    def choose(size: int) -> Sequence[int]:
        everywhere = range(1, size)
        if request.config.getoption("--every-cut") or size <= 2 * SAMPLED_CUTS:
            return everywhere
        return sorted({*everywhere[:SAMPLED_CUTS], *random.Random(size).sample(everywhere, SAMPLED_CUTS)})

    return choose


class Wire:
    """Builds events and packets."""

    def event(self, kind: int, body: bytes, *, next_position: int = 0, flags: int = 0, server_id: int = 1) -> bytes:
        """Return an event with timestamp 1 and a checksum; `kind` is the number of its type."""
        head = (1).to_bytes(4, "little") + bytes([kind]) + server_id.to_bytes(4, "little")
        size = 19 + len(body) + 4
        numbers = size.to_bytes(4, "little") + next_position.to_bytes(4, "little") + flags.to_bytes(2, "little")
        event = head + numbers + body
        return event + zlib.crc32(event).to_bytes(4, "little")

    def bare(self, event: bytes) -> bytes:
        """Remove an event's checksum: events in a compressed transaction have none."""
        return event[:9] + (len(event) - 4).to_bytes(4, "little") + event[13:-4]

    def head(self, *, mariadb: bool = False, checksum: bool = True, version: str = "9.7.0", number: int = 4) -> bytes:
        """Return the FORMAT_DESCRIPTION event with which a file starts. MariaDB's lists more event types."""
        types = 171 if mariadb else 42
        body = (
            number.to_bytes(2, "little")
            + version.encode().ljust(50, b"\0")
            + bytes(4)
            + b"\x13"
            + bytes(types)
            + bytes([checksum])
        )
        return self.event(15, body)

    def packets(self, *events: bytes) -> bytes:
        """Return the packets in which a dump sends these events."""
        return b"".join(self.packet(b"\0" + event) for event in events)

    def packet(self, payload: bytes) -> bytes:
        """Return a payload as a packet, or as several if it is long."""
        parts = [payload[at : at + 0xFFFFFF] for at in range(0, len(payload) + 1, 0xFFFFFF)]
        return b"".join(len(part).to_bytes(3, "little") + bytes([i & 255]) + part for i, part in enumerate(parts))

    def table(self, types: str, metadata: str = "", extra: str = "", columns: int = 1) -> bytes:
        """Return a TABLE_MAP event of lab.t; its columns' types, metadata and optional metadata are hexadecimal."""
        meta = bytes.fromhex(metadata)
        body = bytes.fromhex("070000000000 0100 03 6c616200 01 7400") + bytes([columns]) + bytes.fromhex(types)
        return self.event(19, body + bytes([len(meta)]) + meta + bytes((columns + 7) // 8) + bytes.fromhex(extra))

    def inserted(self, image: str, columns: int = 1) -> bytes:
        """Return a WRITE_ROWS event of lab.t with one row, whose null bitmap and values are hexadecimal."""
        present = b"\xff" * ((columns + 7) // 8)
        return self.event(
            30, bytes.fromhex("070000000000 0100 0200") + bytes([columns]) + present + bytes.fromhex(image)
        )


@pytest.fixture(scope="session")
def wire() -> Wire:
    return Wire()


@pytest.fixture
def decode(wire: Wire) -> Callable[..., Events]:
    """Decode complete events with checksums, given as bytes or hexadecimal; raise the error that they cause."""

    def run(*events: bytes | str, mariadb: bool = False, **options: object) -> Events:
        complete = [bytes.fromhex(event) if isinstance(event, str) else event for event in events]
        decoder = Decoder(**options)
        decoder.feed(wire.packets(wire.head(mariadb=mariadb)))
        found = decoder.feed(wire.packets(*complete))
        if decoder.failure:
            raise decoder.failure
        return found

    return run


@pytest.fixture
def value_of(wire: Wire, decode: Callable[..., Events]) -> Callable[..., bytes | None]:
    """Decode the value of a table with one column; type, metadata, value and optional metadata are hexadecimal."""

    def run(kind: str, metadata: str, value: str, extra: str = "") -> bytes | None:
        [rows] = decode(wire.table(kind, metadata, extra), wire.inserted("00" + value))
        assert isinstance(rows, Rows)
        [[found]] = rows.images()
        return found

    return run


@pytest.fixture(scope="session")
def binlog_file() -> Callable[[str], bytes]:
    """Read a file of tests/fixtures/mariadb-binlog."""
    return lambda name: (FILES / name).read_bytes()
