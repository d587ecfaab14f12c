"""The replication commands: the payloads of their packets.

https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_replication.html
"""

from __future__ import annotations

import struct

_REGISTER, _DUMP, _DUMP_GTID, _ACK = 0x15, 0x12, 0x1E, 0xEF

NON_BLOCK = 0x01  #: end the dump at the end of the log, instead of waiting for more events
ANNOTATE = 0x02  #: MariaDB: also send the statements that changed the rows (ANNOTATE_ROWS)


def packet(payload: bytes, sequence: int = 0) -> bytes:
    """Return a packet with this payload, which must have less than 16 MiB."""
    return len(payload).to_bytes(3, "little") + bytes([sequence]) + payload


def semi_sync_ack(file: str, offset: int) -> bytes:
    """Return the acknowledgement for a semi-synchronous server: all events up to this offset were received."""
    return struct.pack("<BQ", _ACK, offset) + file.encode()


def register(server_id: int, host: str, user: str, port: int) -> bytes:
    """Return COM_REGISTER_SLAVE; the strings only show up in SHOW REPLICAS."""
    names = b"".join(bytes([len(name)]) + name for name in (host.encode()[:60], user.encode()[:32], b""))
    return struct.pack("<BI", _REGISTER, server_id) + names + struct.pack("<HII", port & 0xFFFF, 0, 0)


def dump(file: str, offset: int, server_id: int, flags: int) -> bytes:
    """Return COM_BINLOG_DUMP. An empty `file`: start at the oldest one, or at MariaDB's @slave_connect_state if set."""
    return struct.pack("<BIHI", _DUMP, offset, flags, server_id) + file.encode()


def annotated(packet: bytes) -> bytes:
    """Return the same packet with the flag ANNOTATE if its command is COM_BINLOG_DUMP."""
    if packet[4] != _DUMP:
        return packet
    flags = 4 + struct.calcsize("<BI")
    return packet[:flags] + bytes([packet[flags] | ANNOTATE]) + packet[flags + 1 :]


def dump_gtid(executed: bytes, server_id: int, flags: int) -> bytes:
    """Return COM_BINLOG_DUMP_GTID for all transactions that are not in `executed`, an encoded GTID set."""
    return struct.pack("<BHIIQI", _DUMP_GTID, flags, server_id, 0, 4, len(executed)) + executed
