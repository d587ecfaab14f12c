"""Single events of many types: whole events in hexadecimal are copied from binlogs, the others are built here."""

import msgspec
import pytest

from databus_binlog import ABSENT, CorruptEvent, Decoder, Incident, PartialRowImage, Rows, UnknownEvent

#: the table map of lab.mi, from MariaDB
MI_TABLE = "6de0006b130903000032000000c302000000002100000000000100036c616200026d69000403030ffc030a00020e22abf971"
#: an insert into lab.mi with binlog_row_image=MINIMAL
MI_INSERT = "6de0006b17090300002a000000ed020000000021000000000001000403fc01000000020000003fc0bc63"
#: the table map of hotel_management_db.log_habitacion, from MySQL 9
LOG_TABLE = (
    "0b1f866a130100000056000000cf0100000000c70000000000030013686f74656c5f6d616e6167656d656e745f6462000e"
    "6c6f675f68616269746163696f6e000403030f1103c80000080101000203fcff00a8dab957"
)
#: an insert into that table
LOG_INSERT = (
    "0b1f866a1e0100000039000000080200000000c700000000001100020004ff003300000001000000084c696d7069657a6167c35d683b628972"
)
#: from MariaDB
GTID_OF_TRANSACTION = "6de0006ba2090300002a0000005802000008002e00000000000000050000000c00000000000088068a16"
#: from MariaDB, of the second phase of an ALTER
GTID_OF_ALTER = "b8df006ba2090300002d0000004611000008002100000000000000050000002904200000000000000009a4fe34"


# --- transactions


@pytest.mark.parametrize(
    ("event", "gtid", "standalone", "ddl", "start"),
    [
        (
            "6de0006ba2090300002a000000a101000008002d00000000000000050000002900000000000073fff907",
            "5-777-45",
            True,
            True,
            375,
        ),
        (GTID_OF_TRANSACTION, "5-777-46", False, False, 558),
        (
            "a1e1006ba2090300002c000000a301000008004400000000000000050000000ee800000000000000a26bdcb7",
            "5-777-68",
            False,
            False,
            375,
        ),
        (
            "b8df006ba20903000032000000110e000008001d00000000000000050000004c07000000040278747278627101ff7652d989",
            "5-777-29",
            False,
            False,
            3551,
        ),
        (
            "b8df006ba20903000030000000550f000008001e00000000000000050000008d070000000402787472786271d5a9eda5",
            "5-777-30",
            True,
            False,
            3877,
        ),
        (GTID_OF_ALTER, "5-777-33", True, True, 4377),
        (
            "a1e1006ba2370000002a0000003d0500000880e80300000000000009000000040000000000006bf6a058",
            "9-55-1000",
            False,
            False,
            1299,
        ),
    ],
)
def test_a_gtid_of_mariadb_shows_whether_a_single_statement_or_ddl_follows(decode, event, gtid, standalone, ddl, start):
    [found] = decode(event, mariadb=True)
    assert (found.gtid, found.standalone, found.ddl, found.start) == (gtid, standalone, ddl, start)


def test_the_gtid_of_an_alter_in_two_phases_shows_the_phase(wire, decode):
    started = (32).to_bytes(8, "little") + (5).to_bytes(4, "little") + b"\x29\x02"
    gtids = decode(
        wire.event(162, started.ljust(19, b"\0"), server_id=777), GTID_OF_ALTER, GTID_OF_TRANSACTION, mariadb=True
    )
    assert [(event.gtid, event.alter) for event in gtids] == [
        ("5-777-32", "start"),
        ("5-777-33", "commit"),
        ("5-777-46", ""),
    ]


@pytest.mark.parametrize(
    ("event", "gtid", "time", "start"),
    [
        ("b94b335aa202000000260000003814000008007319000000000000000000000c000000000000", "0-2-6515", 1513311161, 5138),
        ("e24b335aa20200000026000000e414000008007419000000000000000000000c000000000000", "0-2-6516", 1513311202, 5310),
    ],
)
def test_a_gtid_is_read_from_a_log_without_checksums(wire, event, gtid, time, start):
    decoder = Decoder(flavor="mariadb")
    decoder.feed(wire.packets(wire.head(mariadb=True, checksum=False)))
    [found] = decoder.feed(wire.packets(bytes.fromhex(event)))
    assert (found.gtid, found.time, found.start, found.server_id) == (gtid, time, start, 2)


def test_a_transaction_of_mariadb_has_its_statement_and_its_commit(decode):
    annotation, xid = decode(
        "6de0006ba00903000039000000910200000000696e7365727420696e746f206d69202869642c61292076616c7565732028312c3229ba2ca60f",
        "6de0006b10090300001f0000000c0300000000be00000000000000270034da",
        mariadb=True,
    )
    assert annotation.query == b"insert into mi (id,a) values (1,2)"
    assert (xid.xid, xid.start, xid.end) == (190, 749, 780)


def test_a_transaction_may_end_with_a_commit_statement_or_with_xa_prepare(decode):
    commit, prepared = decode(
        "6de0006b02090300004800000017100000080027000000000000000300001a0000000000010100000000000000000603737464042100"
        "210008006c616200434f4d4d49547d09cd86",
        "b8df006b26090300002a000000250f0000000000070000000400000002000000787472786271ef42328f",
        mariadb=True,
    )
    assert (commit.schema, commit.query, commit.xid, commit.thread_id) == ("lab", b"COMMIT", None, 39)
    assert (prepared.xid, prepared.one_phase) == ("X'78747278',X'6271',7", False)


def test_mariadb_marks_a_transaction_that_ends_in_xa_prepare(decode):
    prepared, committed = decode(
        "b8df006ba20903000032000000110e000008001d00000000000000050000004c07000000040278747278627101ff7652d989",
        "b8df006ba20903000030000000550f000008001e00000000000000050000008d070000000402787472786271d5a9eda5",
        mariadb=True,
    )
    assert (prepared.gtid, prepared.standalone, prepared.xa_prepare) == ("5-777-29", False, True)
    assert (committed.gtid, committed.standalone, committed.xa_prepare) == ("5-777-30", True, False)


# --- the log itself


@pytest.mark.parametrize(
    "event",
    [
        "b8df006ba3090300002b0000002b01000000000100000005000000090300002c000000000000004d856294",  # GTID_LIST
        "b8df006ba109030000260000005101000000000b0000006d62696e2e303030303032c02b2637",  # BINLOG_CHECKPOINT
    ],
)
def test_mariadbs_events_about_its_own_log_are_left_out(decode, event):
    assert not decode(event, mariadb=True)


def test_a_rotate_names_the_next_file_and_the_position_there(decode):
    [rotate] = decode(
        "6de0006b04090300002a00000085150000000004000000000000006d62696e2e303030303034b69e78a1", mariadb=True
    )
    assert (rotate.next_file, rotate.position, rotate.artificial) == ("mbin.000004", 4, False)


def test_an_incident_is_an_error(wire, decode):
    with pytest.raises(Incident, match="LOST_EVENTS happened"):
        decode(wire.event(26, b"\1\0\x14LOST_EVENTS happened"))


def test_a_heartbeat_has_the_servers_position(wire, decode):
    version_1, version_2, far = decode(
        wire.event(27, b"binlog.000001", next_position=500),
        wire.event(41, bytes.fromhex("01 0d 62696e6c6f672e303030303031 02 01 9e 00")),
        wire.event(41, bytes.fromhex("01 0d 62696e6c6f672e303030303031 02 04 fdbbaf27 00")),
    )
    assert (version_1.file, version_1.end) == ("binlog.000001", 500)
    assert (version_2.file, version_2.end) == ("binlog.000001", 158)
    assert far.end == 2600891


def test_a_heartbeat_of_mariadb_may_have_a_position_beyond_4_gib(wire, decode):
    position = (5 << 30) + 77
    [heartbeat] = decode(wire.event(27, position.to_bytes(8, "little") + b"binlog.000001"), mariadb=True)
    assert (heartbeat.file, heartbeat.end) == ("binlog.000001", position)


def test_after_a_heartbeat_of_mysql_beyond_4_gib_the_next_event_starts_at_its_position(wire):
    decoder = Decoder(file="binlog.000001", offset=200)
    decoder.feed(wire.packets(wire.head()))
    position = (5 << 30) + 1
    body = b"\x01\x0dbinlog.000001\x02\x09\xfe" + position.to_bytes(8, "little") + b"\0"
    [heartbeat, xid] = decoder.feed(wire.packets(wire.event(41, body), wire.event(16, bytes(8))))
    assert (heartbeat.end, xid.start) == (position, position)


# --- T4: events of types that cannot be decoded


@pytest.mark.parametrize(("kind", "name"), [(20, "PRE_GA_WRITE_ROWS"), (99, "unknown")])
def test_t4_an_event_of_a_type_that_cannot_be_decoded_is_an_error(wire, decode, kind, name):
    with pytest.raises(UnknownEvent, match=rf"event type {kind} \({name}\) at :100"):
        decode(wire.event(kind, bytes(10), next_position=133))


@pytest.mark.parametrize("kind", [8, 20])  # CREATE_FILE, PRE_GA_WRITE_ROWS
def test_t4_the_error_for_an_event_of_an_old_server_names_its_version(wire, kind):
    decoder = Decoder()
    decoder.feed(wire.packets(wire.head(version="5.1.12-beta-log", checksum=False)))
    said = r"of server 5\.1\.12-beta-log can't be decoded, and must not be skipped: only MySQL before 5\.1\.16 logs it"
    with pytest.raises(UnknownEvent, match=said):
        decoder.feed(wire.packets(wire.bare(wire.event(kind, bytes(10)))))


def test_t4_a_file_that_begins_as_those_of_mysql_4_is_refused_with_the_version(wire):
    start = b"\3\0" + b"4.1.24-log".ljust(50, b"\0") + bytes(4)
    with pytest.raises(UnknownEvent, match=r"\(START_V3\) at old\.000001:4 of server 4\.1\.24-log can't be decoded"):
        Decoder(file="old.000001").feed_file(b"\xfebin" + wire.bare(wire.event(1, start)))


@pytest.mark.parametrize(
    ("version", "number", "said"),
    [
        (
            "5.0.0-alpha-log",
            3,
            "binlog version 3 of server 5.0.0-alpha-log, with event headers of 19 bytes; only version 4",
        ),
        ("5.2.2-a_drop6p14-log", 4, "server 5.2.2-a_drop6p14-log numbers the types of events in its own way"),
        ("5.1.5-a_drop5p5-log", 4, "server 5.1.5-a_drop5p5-log numbers the types of events in its own way"),
    ],
)
def test_t4_a_format_from_before_a_release_is_refused_with_the_version(wire, version, number, said):
    with pytest.raises(CorruptEvent) as refused:
        Decoder().feed(wire.packets(wire.head(version=version, number=number, checksum=False)))
    assert said in str(refused.value)


def test_t4_an_event_of_an_unknown_type_that_is_marked_as_ignorable_is_skipped(wire, decode):
    assert not decode(wire.event(99, bytes(10), flags=0x80))


# --- T9: a statement on a table that is not captured must not disturb the reader, whatever the statement contains


@pytest.mark.parametrize(
    ("charset", "name"), [("utf8mb4", "größe"), ("binary", "größe"), ("gbk", "你好"), ("latin1", "ö")]
)
def test_t9_a_statement_with_any_bytes_in_a_literal_is_decoded(wire, decode, charset, name):
    codec = {"utf8mb4": "utf8", "binary": "utf8"}.get(charset, charset)
    statement = b"INSERT INTO " + name.encode(codec) + b" VALUES (_binary'\xff\xfe')"
    status = b"\x04" + (77).to_bytes(2, "little") * 3
    body = bytes(11) + len(status).to_bytes(2, "little") + status + b"\0" + statement
    [query] = decode(wire.event(2, body), collations={77: charset})
    assert query.query.startswith(f"INSERT INTO {name} VALUES".encode())


@pytest.mark.parametrize("statement", [b"BEGIN", b"DROP TABLE t"])
def test_a_statement_in_a_schema_with_a_damaged_name_is_corrupt(wire, decode, statement):
    def logged(schema):
        return wire.event(2, bytes(8) + bytes([len(schema)]) + bytes(4) + schema + b"\0" + statement)

    [query] = decode(logged("größe".encode()))
    assert (query.schema, query.query) == ("größe", statement)
    with pytest.raises(CorruptEvent, match=r"QUERY"):
        list(decode(logged(b"gr\xf6\xdfe")))


# --- rows


def test_rows_that_lack_only_a_hidden_column_are_complete(wire, decode):
    def hide(table):
        return msgspec.structs.replace(table, columns=table.columns[:1], hidden=1)

    table = wire.table("03 08", extra="0101 80", columns=2)
    for present, hidden in (("01", ""), ("03", "0807060504030201")):
        row = bytes.fromhex(f"070000000000 0100 0200 02 {present} 00 2a000000 {hidden}")
        [rows] = decode(table, wire.event(30, row), describe=hide)
        assert (rows.complete, rows.images()) == (True, [[b"42"]])


def test_mariadbs_compressed_statements_and_rows_are_inflated(wire, decode):
    [query] = decode(
        "b8df006ba5090300008a0000002b02000000000800000000000000030000230000000000010100000000000000000603737464042d00"
        "2d0008008128000000000000006c6162008135789c4b2e4a4d2c495528494cca495548ae52d0c84c51c8cc2b512828cacc4d2caa54c8"
        "4eadd4512853284b2c4ace482cd230323030d0d40400f92311acc01fe161",
        mariadb=True,
    )
    assert query.query == b"create table cz (id int primary key, v varchar(2000))"
    assert query.xid == 40
    table = "1b0000000000 0100 03 6c616200 02 637a00 02 030f 02 d007 02 010100 020108"
    insert, delete = decode(
        wire.event(19, bytes.fromhex(table)),
        "b8df006ba6090300003d0000000403000000001b00000000000100020382038b789cfbc3c8c0c0d0c29c98943c8a46d1281a400400cc"
        "595a1caf1a880e",
        wire.event(19, bytes.fromhex(table)),
        "b8df006ba80903000037000000cf04000000001b0000000000010002038125789cfbc3c8c0c020c75051598507010004390f4a9b0fb1"
        "85",
        mariadb=True,
    )
    assert (insert.action, insert.images()) == ("insert", [[b"1", b"abc" * 300]])
    assert (delete.action, delete.images()) == ("delete", [[b"1", b"xyz" * 10]])


def test_an_insert_of_mysql_9_has_its_table_and_values(decode):
    utf8 = {255: "utf8mb4"}
    events = decode(LOG_TABLE, LOG_INSERT, collations=utf8)
    [rows] = events
    assert isinstance(rows, Rows)
    table = events.tables[rows.table]
    assert (table.schema, table.name) == ("hotel_management_db", "log_habitacion")
    assert [column.nullable for column in table.columns] == [False, False, False, True]
    assert rows.images() == [[b"51", b"1", b"Limpieza", b"2025-03-01 19:18:00"]]
    assert rows.statement_end


def test_rows_of_unwanted_tables_are_left_out_and_wanted_is_called_once_for_a_table(decode):
    calls = []

    def wanted(*table: str) -> bool:
        calls.append(table)
        return False

    assert not decode(LOG_TABLE, LOG_INSERT, LOG_TABLE, LOG_INSERT, wanted=wanted)
    assert calls == [("hotel_management_db", "log_habitacion")]


def test_a_column_that_a_row_image_lacks_is_absent_and_not_null(decode):
    def describe(table):
        columns = [msgspec.structs.replace(c, unsigned=False, charset="latin1") for c in table.columns]
        return msgspec.structs.replace(table, columns=tuple(columns))

    [rows] = decode(MI_TABLE, MI_INSERT, mariadb=True, describe=describe)
    assert not rows.complete
    assert rows.images() == [[b"1", b"2", ABSENT, ABSENT]]


def test_rows_may_refer_to_their_table_by_any_number(wire, decode):
    """Even by 0xFFFFFF, which marks an event without rows only if no table map has this number."""
    number = b"\xff\xff\xff\0\0\0"
    table, insert = (
        wire.event(event[4], number + event[19 + len(number) : -4])
        for event in (wire.table("03", extra="010100"), wire.inserted("00 01000000"))
    )
    [rows] = decode(table, insert)
    assert rows.images() == [[b"1"]]
    assert not decode(wire.event(30, number + bytes.fromhex("0100 0200 01 ff")))


def test_rows_without_their_table_map_are_an_error(decode):
    with pytest.raises(CorruptEvent, match="belong to no table map"):
        decode(LOG_INSERT)


def test_rows_whose_number_of_columns_differs_from_their_table_map_are_an_error(wire, decode):
    with pytest.raises(CorruptEvent, match="have 2 columns, but their table map has 1"):
        decode(wire.table("03", extra="010100"), wire.inserted("00 01000000 02000000", columns=2))


def test_a_truncated_row_is_an_error(wire, decode):
    with pytest.raises(CorruptEvent, match=r"column 0 of lab\.t .*truncated"):
        decode(wire.table("03", extra="010100"), wire.inserted("00 010000"))


def test_rows_without_any_column_are_an_error(wire, decode):
    no_columns = bytes.fromhex("070000000000 0100 0200 01 00")
    with pytest.raises(PartialRowImage, match=r"^lab\.t at .*: rows without any column; set binlog_row_image=FULL"):
        decode(wire.table("03", extra="010100"), wire.event(30, no_columns))


def test_an_exception_while_a_json_diff_is_applied_is_raised_unchanged(wire, decode, monkeypatch):
    monkeypatch.setattr("databus_binlog.partial_json.apply_diffs", lambda *_: 1 / 0)
    table = wire.table("f5", "04")
    update = "070000000000 0100 0200 01 ff ff 00 03000000 0c0161 01 01 00 01000000 02"
    with pytest.raises(ZeroDivisionError):
        decode(table, wire.event(39, bytes.fromhex(update)))
