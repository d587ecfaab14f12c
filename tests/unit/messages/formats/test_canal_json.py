"""The `canal-json` format; a row and a DDL statement are compared byte for byte with examples."""

import json
from collections.abc import Iterable

import pytest

from databus_binlog import Position
from databus_core.errors import PoisonError
from databus_core.events import Action, Begin, Column, Row, Table
from databus_messages.formats import find
from databus_messages.formats.base import Change, DdlStatement, MessageSource, Record, SnapshotRows
from databus_messages.formats.canal import CanalOptions
from databus_messages.formats.canal_json import CanalJson

T1 = Table(
    schema="test",
    name="t1",
    columns=(
        Column(name="id", type="int", raw_type="int(11)"),
        Column(name="name", type="varchar", raw_type="varchar(20)", nullable=True),
    ),
    primary_key=(0,),
)
BEGIN = Begin(7, "", "mysql-bin.000001", 1, 0, 1_700_000_000_000_000)
FORMAT = CanalJson(MessageSource("shop", "mysql", "db1", 3306), CanalOptions(), clock=lambda: 1_700_000_000.042)


def change(action: Action, *rows: Row, table: Table = T1, begin: Begin = BEGIN) -> bytes:
    event = Change(table, begin, action, start=154, end=200, first=0, ordinals=range(len(rows)), rows=rows)
    return only_value(FORMAT.change(event))


def only_value(records: Iterable[Record]) -> bytes:
    (record,) = list(records)
    assert (record.key, record.topic) == (None, None)
    return record.value or b""


def test_the_format_is_found_by_its_name() -> None:
    assert find("canal-json") is CanalJson


def test_an_update_is_encoded_as_in_canals_example() -> None:
    assert change(Action.UPDATE, [b"1", b"Anne"], [b"1", None]).decode() == (
        '{"data":[{"id":"1","name":null}],"database":"test","es":1700000000000,"gtid":"","id":7,"isDdl":false,'
        '"mysqlType":{"id":"int(11)","name":"varchar(20)"},"old":[{"name":"Anne"}],"pkNames":["id"],"sql":"",'
        '"sqlType":{"id":4,"name":12},"table":"t1","ts":1700000000042,"type":"UPDATE"}'
    )


def test_an_event_is_one_message_with_all_its_rows() -> None:
    message = json.loads(change(Action.INSERT, [b"1", b""], [b"2", 'né "😀"\n\x7f'.encode()]))
    assert message["data"] == [{"id": "1", "name": ""}, {"id": "2", "name": 'né "😀"\n\x7f'}]
    assert (message["old"], message["type"]) == (None, "INSERT")


def test_a_delete_has_the_deleted_rows() -> None:
    message = json.loads(change(Action.DELETE, [b"1", b"Anne"]))
    assert (message["data"], message["old"], message["type"]) == ([{"id": "1", "name": "Anne"}], None, "DELETE")


def test_old_of_a_row_has_only_the_columns_that_changed_in_this_row() -> None:
    rows: list[Row] = [[b"1", b"a"], [b"1", b"b"], [b"2", b"c"], [b"3", b"c"], [b"4", None], [b"4", None]]
    assert json.loads(change(Action.UPDATE, *rows))["old"] == [{"name": "a"}, {"id": "2"}, {}]


def test_sql_type_is_the_type_of_the_last_rows_values() -> None:
    columns = (
        Column(name="u", type="int", raw_type="int(10) unsigned", unsigned=True),
        Column(name="j", type="json", raw_type="json", nullable=True),
        Column(name="s", type="set", raw_type="set('a')", nullable=True, values=("a",)),
    )
    table = Table(schema="s", name="t", columns=columns)
    small, large = [b"1", b"{}", b"1"], [b"4294967295", None, None]
    assert json.loads(change(Action.INSERT, large, small, table=table))["sqlType"] == {"u": 4, "j": 12, "s": -7}
    message = json.loads(change(Action.INSERT, small, large, table=table))
    assert message["sqlType"] == {"u": -5, "j": 1111, "s": 2004}
    assert message["pkNames"] is None


def test_pk_names_are_in_the_tables_order_and_column_names_are_escaped() -> None:
    names = ("b%b", 'a"\\', "ключ")
    columns = tuple(Column(name=name, type="int", raw_type="int") for name in names)
    message = json.loads(
        change(
            Action.INSERT, [b"1", b"2", b"3"], table=Table(schema="s", name="t", columns=columns, primary_key=(2, 0))
        )
    )
    assert message["data"] == [dict(zip(names, "123", strict=True))]
    assert message["pkNames"] == ["b%b", "ключ"]


def test_a_message_has_its_transactions_id_gtid_and_commit_time() -> None:
    begin = Begin(12, "0-1-77", "mariadb-bin.000002", 1, 0, 1_700_000_000_123_456)
    message = json.loads(change(Action.INSERT, [b"1", None], begin=begin))
    assert (message["id"], message["gtid"], message["es"]) == (12, "0-1-77", 1_700_000_000_123)


def test_a_ddl_message_has_all_members() -> None:
    sql = b"alter table `test`.t1 add column c int"
    assert only_value(FORMAT.statement(DdlStatement(T1, BEGIN, Action.ALTER, sql, 300, 400))).decode() == (
        '{"data":null,"database":"test","es":1700000000000,"gtid":"","id":7,"isDdl":true,"mysqlType":null,"old":null,'
        '"pkNames":null,"sql":"alter table `test`.t1 add column c int","sqlType":null,"table":"t1","ts":1700000000042,'
        '"type":"ALTER"}'
    )


def test_rows_of_a_dump_are_inserts() -> None:
    position = Position("0-1-99", "mariadb-bin.000002", 4711)
    dumped = SnapshotRows(T1, position, 1_700_000_001_000_000, [[b"1", b"Anne"], [b"2", None]])
    message = json.loads(only_value(FORMAT.snapshot(dumped)))
    assert message["data"] == [{"id": "1", "name": "Anne"}, {"id": "2", "name": None}]
    assert [message[name] for name in ("type", "id", "gtid", "es")] == ["INSERT", 0, "0-1-99", 1_700_000_001_000]
    assert list(FORMAT.snapshot(SnapshotRows(T1, position, 0, [], first=True, last=True))) == []


def test_text_that_is_not_utf8_is_rejected_without_quoting_it() -> None:
    with pytest.raises(PoisonError, match=r"^a row of test\.t1 has a value that does not fit its column \(\w+\)$"):
        change(Action.INSERT, [b"1", b"\xff"])
