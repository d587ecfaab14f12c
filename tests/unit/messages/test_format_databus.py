"""The `databus` format, with examples that are compared byte for byte."""

import json
from base64 import b64decode

import msgspec

from databus_binlog import Position
from databus_core.events import Action, Begin, Column, Index, QueryEvent, RowsEvent, Table
from databus_messages.formats.base import Change, MessageSource, SnapshotRows
from databus_messages.formats.databus import Databus, DatabusOptions, Encoder
from databus_wire.packed_rows import PackedRows

SOURCE = MessageSource("shop", "mysql", "db1", 3306)
BEGIN = Begin(transaction=1, gtid="", file="mysql-bin.000003", server_id=1, thread_id=1, time_us=1)

COLUMNS = (
    Column(name="id", type="int", raw_type="int(11)", auto_increment=True),
    Column(name="name", type="varchar", raw_type="varchar(20)"),
    Column(name="price", type="decimal", raw_type="decimal(10,2)"),
    Column(name="pic", type="blob", raw_type="blob"),
    Column(name="at", type="datetime", raw_type="datetime"),
)
TABLE = Table(schema="test", name="t1", columns=COLUMNS, primary_key=(0,), indexes=(Index("PRIMARY", ("id",)),))
#: the beginning of a record's value, before `Action`
HEAD = (
    '{"Table":{"Schema":"test","Name":"t1","Columns":['
    '{"Name":"id","Type":1,"RawType":"int(11)","IsAuto":true,"EnumValues":null,"SetValues":null},'
    '{"Name":"name","Type":5,"RawType":"varchar(20)","IsAuto":false,"EnumValues":null,"SetValues":null},'
    '{"Name":"price","Type":2,"RawType":"decimal(10,2)","IsAuto":false,"EnumValues":null,"SetValues":null},'
    '{"Name":"pic","Type":5,"RawType":"blob","IsAuto":false,"EnumValues":null,"SetValues":null},'
    '{"Name":"at","Type":6,"RawType":"datetime","IsAuto":false,"EnumValues":null,"SetValues":null}],'
    '"Indexes":[{"Name":"PRIMARY","Columns":["id"],"Cardinality":[1]}],"PKColumns":[0]}'
)


def rows(action: Action, *images: list[bytes | None]) -> RowsEvent:
    return RowsEvent("", action, 0, 154, 468, msgspec.Raw(msgspec.msgpack.encode(list(images))))


def test_an_insert_is_encoded_as_in_the_example() -> None:
    event = rows(Action.INSERT, [b"1", b"Anne", b"19.99", None, b"2021-02-03 04:05:06"])
    key = Encoder().key("mysql-bin.000003", event.end)
    value = Encoder().rows_value(TABLE, event.action, PackedRows(event.rows))
    assert key.decode() == '{"Pos":{"Name":"mysql-bin.000003","Pos":468},"Action":"DML"}'
    assert value.decode() == HEAD + (
        ',"Action":"insert","Rows":[["MQ==","QW5uZQ==","MTkuOTk=",null,"MjAyMS0wMi0wMyAwNDowNTowNg=="]]}'
    )


def test_in_an_update_before_and_after_images_alternate() -> None:
    event = rows(Action.UPDATE, [b"1", b"Anne", None, None, None], [b"1", None, b"20.50", b"\x00\xff\x10", b""])
    value = Encoder().rows_value(TABLE, event.action, PackedRows(event.rows))
    assert value.decode() == HEAD + (
        ',"Action":"update","Rows":[["MQ==","QW5uZQ==",null,null,null],["MQ==",null,"MjAuNTA=","AP8Q",""]]}'
    )


def test_ddl_has_the_statement_in_base64() -> None:
    event = QueryEvent("", Action.ALTER, b"alter table `test`.t1 add column c int", 812, 930)
    key, value = Encoder().query(TABLE, "mysql-bin.000003", event)
    assert key.decode() == '{"Pos":{"Name":"mysql-bin.000003","Pos":930},"Action":"DDL"}'
    assert value.decode() == HEAD + ',"Action":"alter","Query":"YWx0ZXIgdGFibGUgYHRlc3RgLnQxIGFkZCBjb2x1bW4gYyBpbnQ="}'
    assert b64decode(json.loads(value)["Query"]) == event.query


def test_labels_are_escaped_as_in_go_and_a_missing_primary_key_is_null() -> None:
    enum = Column(name="e", type="enum", raw_type="enum('<a>','b&c')", values=("<a>", "b&c"))
    value = Encoder().rows_value(Table(schema="s", name="t", columns=(enum,)), Action.INSERT, [[b"1"]])
    assert b'"EnumValues":["\\u003ca\\u003e","b\\u0026c"],"SetValues":null' in value
    assert b'"Indexes":[],"PKColumns":null}' in value
    assert json.loads(value)["Table"]["Columns"][0]["EnumValues"] == ["<a>", "b&c"]


def test_a_change_is_one_record_whether_its_rows_are_packed_or_not() -> None:
    databus = Databus(SOURCE, DatabusOptions())
    event = rows(Action.DELETE, [b"1", b"Anne", None, None, None])
    change = Change(TABLE, BEGIN, event.action, 154, 468, 0, range(1), [[b"1", b"Anne", None, None, None]])
    packed = msgspec.structs.replace(change, rows=PackedRows(event.rows))
    (record,) = databus.change(change)
    assert list(databus.change(packed)) == [record]
    assert record.key == Encoder().key(BEGIN.file, 468)
    assert record.value == Encoder().rows_value(TABLE, Action.DELETE, change.rows)


def test_rows_of_a_dump_are_inserts_at_its_position() -> None:
    databus = Databus(SOURCE, DatabusOptions())
    position = Position("", "mysql-bin.000003", 468)
    assert databus.snapshot(SnapshotRows(TABLE, position, 1, [], first=True)) == ()
    image = [b"1", b"Anne", b"19.99", None, b""]
    (record,) = databus.snapshot(SnapshotRows(TABLE, position, 1, [image]))
    change = Change(TABLE, BEGIN, Action.INSERT, 154, 468, 0, range(1), [image])
    assert list(databus.change(change)) == [record]


def test_compat_strict_writes_the_text_of_the_original_server_and_keeps_null() -> None:
    columns = (
        Column(name="n", type="int", raw_type="int(10) unsigned", unsigned=True),
        Column(name="f", type="double", raw_type="double"),
    )
    table = Table(schema="test", name="t2", columns=columns)
    packed = PackedRows(rows(Action.UPDATE, [b"4294967295", b"1.5"], [None, None]).rows)
    change = Change(table, BEGIN, Action.UPDATE, 154, 468, 0, range(1), packed)
    [[_, exact, *_]] = Databus(SOURCE, DatabusOptions()).change(change)
    [[_, strict, *_]] = Databus(SOURCE, DatabusOptions(compat="strict")).change(change)
    assert cells(exact) == [[b"4294967295", b"1.5"], [None, None]]
    assert cells(strict) == [[b"-1", b"1.5000"], [None, None]]


def cells(value: bytes) -> list[list[bytes | None]]:
    return [[cell and b64decode(cell) for cell in row] for row in json.loads(value)["Rows"]]
