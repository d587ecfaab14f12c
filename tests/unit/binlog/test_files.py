"""Binlog files of MariaDB 10.11, and one of MySQL 9.7, are decoded."""

import msgspec
import pytest

from databus_binlog import ABSENT, CorruptEvent, Decoder, MissingMetadata, Rows, TableMap
from fuzz.damage import events_of


def describe(table: TableMap) -> TableMap:
    """Add to a table what the server did not log: its columns are signed, and its text is in Latin-1."""
    columns = tuple(
        msgspec.structs.replace(column, unsigned=bool(column.unsigned), charset=column.charset or "latin1")
        for column in table.columns
    )
    return msgspec.structs.replace(table, columns=columns)


def rows_of(data: bytes, **options: object) -> list[Rows]:
    decoder = Decoder(describe=describe, **options)
    found = [event for event in decoder.feed_file(data) if isinstance(event, Rows)]
    if decoder.failure:
        raise decoder.failure
    return found


def test_values_are_read_with_and_without_full_metadata_and_column_names_only_with_it(binlog_file):
    decoder = Decoder(describe=describe, wanted=lambda _, table: table.startswith("meta"))
    events = decoder.feed_file(binlog_file("x1.bin"))
    rows = [event for event in events if isinstance(event, Rows)]
    tables = [events.tables[each.table] for each in rows]
    assert [(table.name, table.has_names) for table in tables] == [
        ("meta", True),
        ("meta2", True),
        ("meta2", False),
        ("meta3", False),
    ]
    [image] = rows[0].images()
    named = {column.name: value for column, value in zip(tables[0].columns, image, strict=True)}
    assert (named["id"], named["d"], named["y"], named["bt"], named["e1"]) == (b"1", b"5.00", b"2000", b"1", b"1")
    assert rows[3].images() == [[b"a", b"b", b"c", b"d"]]


def test_rows_without_the_metadata_to_decode_them_are_an_error(binlog_file):
    decoder = Decoder(file="x1.bin")
    events = decoder.feed_file(binlog_file("x1.bin"))
    assert {type(event).__name__ for event in events} == {"FormatDescription", "Gtid", "Query", "RowsQuery"}
    with pytest.raises(MissingMetadata, match=r"column 0 of lab.tt: .*\(x1.bin:2717\)"):
        decoder.feed_file(b"")


def test_mariadbs_compressed_rows_are_inflated(binlog_file):
    rows = rows_of(binlog_file("x2.bin"), wanted=lambda _, table: table == "cz")
    images = [image for r in rows for image in r.images()]
    assert images[:2] == [[b"1", b"abc" * 300], [b"1", b"abc" * 300]]
    assert images[2] == [b"1", b"xyz" * 10]


def test_minimal_images_leave_columns_absent(binlog_file):
    insert, update, *_ = rows_of(binlog_file("x3.bin"), wanted=lambda _, table: table == "mi")
    assert insert.images() == [[b"1", b"2", ABSENT, ABSENT]]
    assert update.images() == [[b"1", ABSENT, ABSENT, ABSENT], [ABSENT, b"3", ABSENT, ABSENT]]
    assert not insert.complete
    full = rows_of(binlog_file("x3.bin"), wanted=lambda _, table: table in {"ctas", "vcol"})
    assert [rows.images() for rows in full] == [[[b"1"], [b"2"]], [[b"5", b"6", b"7"]]]
    assert all(rows.complete for rows in full)


def test_gtids_keep_their_domain_and_server(binlog_file):
    events = Decoder(describe=describe).feed_file(binlog_file("x4.bin"))
    gtids = [event.gtid for event in events if type(event).__name__ == "Gtid"]
    assert "5-777-68" in gtids
    assert "9-55-1000" in gtids


def test_the_checksum_of_a_file_that_is_still_in_use_is_accepted(binlog_file):
    [head] = Decoder().feed_file(binlog_file("x5.bin"))
    assert (head.checksum, head.server_version) == (True, "10.11.19-MariaDB-0+deb12u1-log")


@pytest.mark.parametrize("name", ["x3.bin", "x4.bin"])
def test_pieces_of_any_size_give_the_same_events(binlog_file, name):
    data = binlog_file(name)
    options = {"describe": describe, "wanted": lambda _, table: table != "mi"}
    expected = list(Decoder(**options).feed_file(data))
    for size in [*range(1, 70), 1000, len(data) - 1]:
        decoder = Decoder(**options)
        found = []
        for at in range(0, len(data), size):
            found += decoder.feed_file(data[at : at + size])
        assert found == expected
        assert not decoder.pending


@pytest.mark.parametrize("semi_sync", [False, True])
@pytest.mark.parametrize("name", ["x1.bin", "x3.bin", "x4.bin", "../mysql-binlog/m1.bin"])
def test_packets_with_any_cut_give_the_same_events(wire, binlog_file, cuts, name, semi_sync):
    status = b"\0\xef\0" if semi_sync else b"\0"
    data = b"".join(wire.packet(status + event) for event in events_of(binlog_file(name)))
    expected = list(Decoder(describe=describe, semi_sync=semi_sync).feed(data))
    assert expected
    for at in cuts(len(data)):
        decoder = Decoder(describe=describe, semi_sync=semi_sync)
        assert [*decoder.feed(data[:at]), *decoder.feed(data[at:])] == expected, at


@pytest.mark.parametrize("at", [30, 300, 450, -1])
def test_a_changed_bit_is_an_error(binlog_file, at):
    data = bytearray(binlog_file("x4.bin"))
    data[at] ^= 1
    with pytest.raises(CorruptEvent, match="wrong checksum"):
        rows_of(bytes(data))


def test_a_file_that_is_encrypted_or_not_a_binlog_is_refused():
    for content in (b"PK\3\4....", b"\xfdbin...."):
        with pytest.raises(CorruptEvent, match="binlog file"):
            Decoder().feed_file(content)


def test_row_images_are_msgpack_of_byte_strings(binlog_file):
    [rows, *_] = rows_of(binlog_file("x3.bin"), wanted=lambda _, table: table == "ctas")
    assert bytes(rows.rows) == b"\xdd\0\0\0\x02\x91\xc4\x011\x91\xc4\x012"
    assert rows.images() == [[b"1"], [b"2"]]
