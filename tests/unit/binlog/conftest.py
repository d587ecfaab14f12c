"""Builds bytes as servers write them, for tests without a server."""

import random
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from databus_binlog import Decoder, Events, Rows

FILES = Path(__file__).parents[2] / "fixtures" / "mariadb-binlog"


#: cuts of a stream that a test tries, unless it is run with --every-cut (`make fuzz`)
SAMPLED_CUTS = 200


@pytest.fixture
def cuts(request: pytest.FixtureRequest) -> Callable[[int], Sequence[int]]:
    """Choose where to cut a stream of this size: everywhere in its first bytes, then a seeded sample."""

    def choose(size: int) -> Sequence[int]:
        everywhere = range(1, size)
        if request.config.getoption("--every-cut") or size <= 2 * SAMPLED_CUTS:
            return everywhere
        return sorted({*everywhere[:SAMPLED_CUTS], *random.Random(size).sample(everywhere, SAMPLED_CUTS)})

    return choose


class Wire:
    """Builds events and packets."""

    def event(self, kind: int, body: bytes, *, next_position: int = 0, flags: int = 0, server_id: int = 1) -> bytes:
        head = (1).to_bytes(4, "little") + bytes([kind]) + server_id.to_bytes(4, "little")
        size = 19 + len(body) + 4
        numbers = size.to_bytes(4, "little") + next_position.to_bytes(4, "little") + flags.to_bytes(2, "little")
        event = head + numbers + body
        return event + zlib.crc32(event).to_bytes(4, "little")

    def head(self, version: str = "9.7.0", types: int = 42, checksum: int = 1) -> bytes:
        body = b"\4\0" + version.encode().ljust(50, b"\0") + bytes(4) + b"\x13" + bytes(types) + bytes([checksum])
        return self.event(15, body)

    def packets(self, *events: bytes) -> bytes:
        return b"".join(self.packet(b"\0" + event) for event in events)

    def packet(self, payload: bytes) -> bytes:
        parts = [payload[at : at + 0xFFFFFF] for at in range(0, len(payload) + 1, 0xFFFFFF)]
        return b"".join(len(part).to_bytes(3, "little") + bytes([i & 255]) + part for i, part in enumerate(parts))

    def table(self, types: str, metadata: str = "", extra: str = "", columns: int = 1) -> bytes:
        """Return a TABLE_MAP event of lab.t; the strings are hexadecimal."""
        meta = bytes.fromhex(metadata)
        body = bytes.fromhex("070000000000 0100 03 6c616200 01 7400") + bytes([columns]) + bytes.fromhex(types)
        return self.event(19, body + bytes([len(meta)]) + meta + bytes((columns + 7) // 8) + bytes.fromhex(extra))

    def inserted(self, image: str, columns: int = 1) -> bytes:
        """Return a WRITE_ROWS event of lab.t with one row: null bitmap and values, hexadecimal."""
        present = b"\xff" * ((columns + 7) // 8)
        return self.event(
            30, bytes.fromhex("070000000000 0100 0200") + bytes([columns]) + present + bytes.fromhex(image)
        )


@pytest.fixture(scope="session")
def wire() -> Wire:
    return Wire()


@pytest.fixture
def decode(wire: Wire) -> Callable[..., Events]:
    """Decode complete events, given as bytes or hexadecimal, as a MySQL (or MariaDB) with checksums sends them."""

    def run(*events: bytes | str, mariadb: bool = False, **options: object) -> Events:
        complete = [bytes.fromhex(event) if isinstance(event, str) else event for event in events]
        decoder = Decoder(**options)
        decoder.feed(wire.packets(wire.head(types=171 if mariadb else 42)))
        found = decoder.feed(wire.packets(*complete))
        if decoder.failure:
            raise decoder.failure
        return found

    return run


@pytest.fixture
def value_of(wire: Wire, decode: Callable[..., Events]) -> Callable[..., bytes | None]:
    """Decode one value of a table with one column."""

    def run(code: str, metadata: str, value: str, extra: str = "") -> bytes | None:
        [rows] = decode(wire.table(code, metadata, extra), wire.inserted("00" + value))
        assert isinstance(rows, Rows)
        [[found]] = rows.images()
        return found

    return run


@pytest.fixture(scope="session")
def binlog_file() -> Callable[[str], bytes]:
    return lambda name: (FILES / name).read_bytes()
