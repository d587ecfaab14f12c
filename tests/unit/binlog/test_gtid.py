"""Sets of executed transactions are read and written as text and as bytes; events that contain GTIDs are decoded."""

import pytest

from databus_binlog import CorruptEvent, Gtid, GtidSet, InvalidPosition, MySqlGtidSet

A = "896e7882-18fe-11ef-ab88-22222d34d411"
B = "00112233-4455-6677-8899-aabbccddeeff"


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("", ""),
        (f"{A}:1-3", f"{A}:1-3"),
        (f" {A.upper()}:1-3:5,\n{B}:7 ", f"{B}:7,{A}:1-3:5"),
        (f"{A}:5:1-3:4,{A}:6-9", f"{A}:1-9"),
        (f"{A}:1-4:aaaa:1:3-5", f"{A}:1-4:aaaa:1:3-5"),
        (f"{A}:Blue:1", f"{A}:blue:1"),
    ],
)
def test_a_mysql_set_prints_as_the_server_prints_it(text, normal):
    assert str(GtidSet.parse("mysql", text)) == normal


def test_adding_several_transactions_at_once_equals_adding_them_one_by_one():
    mysql = [f"{A}:4", f"{A}:5", "", f"{A}:6", f"{B}:1", f"{A}:8", f"{A}:blue:1", f"{A}:7"]
    mariadb = ["0-1-7", "1-1-3", "", "0-2-8"]
    for flavor, start, gtids in (("mysql", f"{A}:1-3", mysql), ("mariadb", "0-1-6,2-1-1", mariadb)):
        together, single = GtidSet.parse(flavor, start), GtidSet.parse(flavor, start)
        together.add_all(gtids)
        for gtid in gtids:
            single.add(gtid)
        assert str(together) == str(single)


@pytest.mark.parametrize("text", ["x", A, f"{A}:0", f"{A}:3-1", f"{A}:a-b", "0-1-2"])
def test_a_text_that_is_no_set_is_refused(text):
    with pytest.raises(InvalidPosition, match="is not a mysql GTID set"):
        GtidSet.parse("mysql", text)


def test_a_mysql_set_grows_and_closes_its_gaps():
    executed = GtidSet.parse("mysql", f"{A}:1-3")
    for gtid in (f"{A}:4", f"{A}:7", f"{B}:1", f"{A}:blue:1", "", f"{A}:6", f"{A}:5"):
        executed.add(gtid)
    assert str(executed) == f"{B}:1,{A}:1-7:blue:1"
    assert f"{A}:7" in executed
    assert f"{A}:8" not in executed
    assert f"{B}:blue:1" not in executed


@pytest.mark.parametrize(
    ("encoded", "text"),
    [
        ("0100000000000001", ""),
        ("0000000000000000", ""),
        (
            "0101000000000001 896e788218fe11efab8822222d34d411 00 0100000000000000 0100000000000000 0400000000000000",
            f"{A}:1-3",
        ),
        (
            "0102000000000001 896e788218fe11efab8822222d34d411 00 0100000000000000 0100000000000000 0500000000000000"
            "896e788218fe11efab8822222d34d411 08 61616161 0100000000000000 0100000000000000 0200000000000000",
            f"{A}:1-4:aaaa:1",
        ),
    ],
)
def test_a_mysql_set_is_decoded_from_the_servers_bytes_and_encoded_again(encoded, text):
    executed = MySqlGtidSet.from_bytes(bytes.fromhex(encoded))
    assert str(executed) == text
    assert MySqlGtidSet.from_bytes(executed.to_bytes()) == executed


def test_the_tagged_encoding_is_used_only_for_a_set_with_tags():
    one_source, one_interval, first, end = (f"{number:02x}00000000000000" for number in (1, 1, 1, 4))
    untagged = GtidSet.parse("mysql", f"{A}:1-3").to_bytes()
    assert untagged.hex() == one_source + A.replace("-", "") + one_interval + first + end
    assert GtidSet.parse("mysql", f"{A}:1-4:aaaa:1").to_bytes().hex().startswith("0102000000000001")


def test_a_mariadb_position_is_the_last_transaction_of_each_domain():
    position = GtidSet.parse("mariadb", "5-777-20,0-1-100")
    position.add("0-2-101")
    position.add("")
    assert str(position) == "0-2-101,5-777-20"
    assert "0-1-99" in position
    assert "5-777-21" not in position
    assert "6-1-1" not in position


@pytest.mark.parametrize(
    ("body", "gtid", "committed"),
    [
        (
            "00 5ccc103344a811eabd590242ac190003 7700000000000000 02 7800000000000000 7900000000000000"
            "6a30b13e78a005 fcc303 93380100",
            "5ccc1033-44a8-11ea-bd59-0242ac190003:119",
            1583813191872618,
        ),
        (  # on a replica: the server's own commit time, then the original server's, which is not known
            "00 5aa72a7f44a811ea947f0242ac190002 0201000000000000 02 7600000000000000 7700000000000000"
            "c147811678a085 00000000000000 fcc503 93380180 00000000",
            "5aa72a7f-44a8-11ea-947f-0242ac190002:258",
            0,
        ),
    ],
)
def test_a_mysql_transaction_has_its_gtid_and_commit_time(wire, decode, body, gtid, committed):
    [event] = decode(wire.event(33, bytes.fromhex(body)))
    assert isinstance(event, Gtid)
    assert (event.gtid, event.commit_time_us, event.standalone) == (gtid, committed, False)


def test_an_anonymous_transaction_has_no_gtid(wire, decode):
    [event] = decode(wire.event(34, bytes(25) + b"\2" + bytes(16)))
    assert event.gtid == ""


TAGGED = bytes.fromhex(
    "0274000002020022446688aaccee21026502a902ed0231037503b903fd03041c0608626c7565080c0a100c7f40222018240a0610b1"
    "0412a3ff0a"
)


def test_a_tagged_transaction_has_its_gtid_and_commit_time(wire, decode):
    [event] = decode(wire.event(42, TAGGED))
    assert (event.gtid, event.commit_time_us) == (f"{B}:blue:7", 1700000000123456)


def test_a_tag_that_is_cut_off_is_an_error(wire, decode):
    cut = TAGGED[: TAGGED.index(b"blue") + 2]
    with pytest.raises(CorruptEvent, match=r"GTID_TAGGED event at .*: 4 bytes wanted, 2 left"):
        decode(wire.event(42, b"\x02" + bytes([2 * len(cut)]) + cut[2:]))
