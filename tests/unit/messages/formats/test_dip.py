"""The `dip` format: CKafka's "official format one" for rows, canal's flat message for DDL."""

import json

import pytest
from msgspec.structs import replace

from databus_binlog import Position
from databus_core.errors import PoisonError
from databus_core.events import Action, Begin, Column, Row, Table
from databus_messages.formats import find
from databus_messages.formats.base import Change, DdlStatement, MessageSource, Options, SnapshotRows
from databus_messages.formats.dip import Dip

CUSTOMERS = Table(
    schema="inventory",
    name="customers",
    columns=(
        Column(name="id", type="int", raw_type="int"),
        Column(name="first_name", type="varchar", raw_type="varchar(255)", nullable=True),
        Column(name="mood", type="enum", raw_type="enum('so, so','it''s fine')", values=("so, so", "it's fine")),
        Column(name="tags", type="set", raw_type="set('a','b','c')", values=("a", "b", "c")),
        Column(name="photo", type="blob", raw_type="blob", nullable=True),
    ),
    primary_key=(0,),
)
BEFORE: Row = [b"1004", "Ané".encode(), b"2", b"5", b"\x00\xff"]
AFTER: Row = [b"1004", None, b"0", b"0", None]
FORMAT = Dip(MessageSource("shop", "mysql", "db1", 3306), Options())


def begin(time_ms: int, gtid: str = "") -> Begin:
    return Begin(7, gtid, "mysql-bin.000003", 1, 0, time_ms * 1000)


def messages(action: Action, *rows: Row, at: Begin) -> list[str]:
    event = Change(CUSTOMERS, at, action, start=484, end=600, first=0, ordinals=range(len(rows)), rows=rows)
    records = list(FORMAT.change(event))
    assert all(record.key is None for record in records)
    return [(record.value or b"").decode() for record in records]


def test_an_update_has_both_images_in_full() -> None:
    assert find("dip") is Dip
    assert messages(Action.UPDATE, BEFORE, AFTER, at=begin(1465581029100)) == [
        '{"BINLOG_NAME":"mysql-bin.000003","BINLOG_POS":484,"DATABASE":"inventory","EVENT_SERVER_ID":null,'
        '"GLOBAL_ID":null,"GROUP_ID":null,'
        '"NEW_VALUES":{"id":"1004","first_name":null,"mood":"","tags":"","photo":null},'
        '"OLD_VALUES":{"id":"1004","first_name":"Ané","mood":"it\'s fine","tags":"a,c","photo":"AP8="},'
        '"TABLE":"customers","TIME":"20160611015029","TYPE":"U"}'
    ]


def test_each_row_is_a_message() -> None:
    inserts = list(map(json.loads, messages(Action.INSERT, BEFORE, AFTER, at=begin(0, "u:23"))))
    assert [(row["TYPE"], row["OLD_VALUES"], row["GLOBAL_ID"]) for row in inserts] == [("I", None, "u:23")] * 2
    assert [row["NEW_VALUES"]["mood"] for row in inserts] == ["it's fine", ""]
    (deleted,) = map(json.loads, messages(Action.DELETE, BEFORE, at=begin(0)))
    assert (deleted["TYPE"], deleted["NEW_VALUES"], deleted["OLD_VALUES"]["id"]) == ("D", None, "1004")


@pytest.mark.parametrize(
    ("time_ms", "expected"),
    [(0, "19700101080000"), (1465581029100, "20160611015029"), (1465581902300, "20160611020502")],
)
def test_time_is_in_utc_plus_8(time_ms: int, expected: str) -> None:
    (message,) = messages(Action.INSERT, BEFORE, at=begin(time_ms))
    assert json.loads(message)["TIME"] == expected


@pytest.mark.parametrize(
    ("action", "sql", "kind", "table"),
    [
        (Action.DROP, "DROP DATABASE inventory", "QUERY", ""),
        (Action.CREATE, "CREATE TABLE inventory.customers (\n  id INT\n)", "CREATE", "customers"),
        (Action.ALTER, "ALTER TABLE inventory.customers ADD c INT", "ALTER", "customers"),
        (Action.DROP, "DROP TABLE inventory.customers", "ERASE", "customers"),
        (Action.ALTER, "RENAME TABLE inventory.old TO inventory.customers", "RENAME", "customers"),
    ],
)
def test_a_statement_is_canals_flat_message(action: Action, sql: str, kind: str, table: str) -> None:
    described = replace(CUSTOMERS, name=table)
    (record,) = FORMAT.statement(DdlStatement(described, begin(1656300979748), action, sql.encode(), 4, 99))
    assert (record.value or b"").decode() == (
        '{"data":null,"database":"inventory","es":1656300979748,"id":0,"isDdl":true,"mysqlType":null,"old":null,'
        f'"pkNames":null,"sql":{json.dumps(sql)},"sqlType":null,"table":"{table}","ts":1656300979748,"type":"{kind}"}}'
    )


def test_rows_of_a_dump_are_inserts_at_its_position() -> None:
    position = Position("u:1-9", "mysql-bin.000004", 4711)
    (record,) = FORMAT.snapshot(SnapshotRows(CUSTOMERS, position, 0, [BEFORE]))
    message = json.loads(record.value or b"")
    assert (message["TYPE"], message["BINLOG_NAME"], message["BINLOG_POS"]) == ("I", "mysql-bin.000004", 4711)
    assert message["GLOBAL_ID"] is None


def test_an_enum_index_without_a_label_is_rejected() -> None:
    with pytest.raises(PoisonError, match=r"a row of inventory\.customers has a value"):
        messages(Action.INSERT, [b"1", None, b"3", b"0", None], at=begin(0))
