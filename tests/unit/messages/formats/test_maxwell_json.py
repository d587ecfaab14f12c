"""The `maxwell-json` format: byte for byte like Maxwell's, except for the differences listed in maxwell_*.py."""

import json
import struct
from collections.abc import Sequence
from typing import Any

import pytest

from databus_binlog import Position
from databus_core.errors import PoisonError
from databus_core.events import Action, Begin, Column, Row, Table
from databus_messages.formats.base import Change, DdlStatement, MessageSource, Record, SnapshotRows, TransactionEnd
from databus_messages.formats.maxwell_json import MaxwellJson
from databus_messages.formats.maxwell_options import MaxwellOptions

ID = Column(name="id", type="int", raw_type="int(11)")
NAME = Column(name="name", type="varchar", raw_type="varchar(20)", charset="utf8mb4", nullable=True)
TABLE = Table(schema="test", name="t1", columns=(ID, NAME), primary_key=(0,), charset="utf8mb4")
BEGIN = Begin(7, "0-1-5", "mariadb-bin.000003", 1, 42, 1_700_000_000_123_456)
ANNE, NOBODY = [b"1", b"Anne"], [b"1", None]


def maxwell(**options: Any) -> MaxwellJson:
    return MaxwellJson(MessageSource("shop", "mariadb", "db1", 3306), MaxwellOptions(**options))


def change(action: Action, *rows: Row, end: TransactionEnd | None, **more: Any) -> Change:
    first = more.get("first", 0)
    ordinals = range(first, first + (len(rows) // 2 if action is Action.UPDATE else len(rows)))
    fields = {"table": TABLE, "begin": BEGIN, "start": 400, "end": 500, "first": 0} | more
    return Change(action=action, rows=list(rows), ordinals=ordinals, transaction_end=end, **fields)


def values(records: Sequence[Record]) -> list[str]:
    return [(record.value or b"").decode() for record in records]


def one_cell(column: Column, value: bytes | None, **options: Any) -> str:
    table = Table(schema="s", name="t", columns=(column,))
    (record,) = maxwell(**options).change(change(Action.INSERT, [value], end=None, table=table))
    return values([record])[0].partition('"data":{"c":')[2].removesuffix("}}")


def column(kind: str, raw_type: str = "", **more: Any) -> Column:
    return Column(name="c", type=kind, raw_type=raw_type or kind, **more)


def test_rows_are_encoded_as_in_the_samples_of_maxwells_documentation() -> None:
    records_of_each = [
        maxwell().change(change(Action.INSERT, ANNE, end=TransactionEnd(39, 600, 1))),
        maxwell().change(change(Action.UPDATE, ANNE, NOBODY, end=TransactionEnd(40, 600, 1))),
        maxwell().change(change(Action.DELETE, NOBODY, end=TransactionEnd(41, 600, 1))),
    ]
    assert [value for records in records_of_each for value in values(list(records))] == [
        '{"database":"test","table":"t1","type":"insert","ts":1700000000,"xid":39,"commit":true,'
        '"data":{"id":1,"name":"Anne"}}',
        '{"database":"test","table":"t1","type":"update","ts":1700000000,"xid":40,"commit":true,'
        '"data":{"id":1,"name":null},"old":{"name":"Anne"}}',
        '{"database":"test","table":"t1","type":"delete","ts":1700000000,"xid":41,"commit":true,'
        '"data":{"id":1,"name":null}}',
    ]


def test_the_last_row_of_a_transaction_has_commit_and_the_others_xoffset() -> None:
    encoder, end = maxwell(output_xoffset=True), TransactionEnd(39, 900, 3)
    encoder.begin(BEGIN)
    two = encoder.change(change(Action.INSERT, [b"1", None], [b"2", None], end=end))
    again = encoder.change(change(Action.INSERT, [b"1", None], [b"2", None], end=end))
    last = encoder.change(change(Action.DELETE, [b"3", None], first=2, end=end))
    members = [json.loads(value) for value in values([*two, *last])]
    assert [(row.get("xoffset"), row.get("commit")) for row in members] == [(0, None), (1, None), (None, True)]
    assert list(two) == list(again)


def test_the_last_row_of_a_transaction_without_an_xid_has_commit() -> None:
    (message,) = values(list(maxwell().change(change(Action.INSERT, ANNE, end=TransactionEnd(None, 600, 1)))))
    assert '"ts":1700000000,"commit":true,"data"' in message


def test_without_commit_info_rows_have_no_xid_commit_or_xoffset() -> None:
    encoder = maxwell(output_commit_info=False, output_xoffset=True)
    (message,) = values(list(encoder.change(change(Action.INSERT, ANNE, end=TransactionEnd(39, 600, 1)))))
    assert '"ts":1700000000,"data"' in message


def test_an_update_that_changes_nothing_has_no_old() -> None:
    (message,) = values(list(maxwell().change(change(Action.UPDATE, ANNE, ANNE, end=None))))
    assert message.endswith('"data":{"id":1,"name":"Anne"}}')


def test_options_add_members_in_maxwells_order() -> None:
    wanted = ("row_query", "binlog_position", "gtid_position", "server_id", "thread_id", "primary_keys")
    encoder = maxwell(output_primary_key_columns=True, **{f"output_{name}": True for name in wanted})
    event = change(Action.INSERT, ANNE, end=TransactionEnd(39, 600, 2), query=b"insert into t1 values (1, '100% Anne')")
    assert values(list(encoder.change(event))) == [
        '{"database":"test","table":"t1","query":"insert into t1 values (1, \'100% Anne\')","type":"insert",'
        '"ts":1700000000,"xid":39,"position":"mariadb-bin.000003:400","gtid":"0-1-5","server_id":1,"thread_id":42,'
        '"primary_key":[1],"primary_key_columns":["id"],"data":{"id":1,"name":"Anne"}}'
    ]


def test_only_the_rows_of_a_logged_statement_have_its_query() -> None:
    encoder = maxwell(output_row_query=True)
    encoder.begin(BEGIN)
    events = [
        change(Action.INSERT, ANNE, end=None, query=b"one"),
        change(Action.INSERT, ANNE, end=None, first=1, start=500),
    ]
    messages = [values(list(encoder.change(event)))[0] for event in events]
    assert ['"query":"one"' in value for value in messages] == [True, True]
    (after_a_gap,) = values(list(encoder.change(change(Action.INSERT, ANNE, end=None, first=2, start=900))))
    assert "query" not in after_a_gap


def test_nulls_can_be_left_out() -> None:
    encoder = maxwell(output_nulls=False)
    (message,) = values(list(encoder.change(change(Action.UPDATE, NOBODY, ANNE, end=None))))
    assert message.endswith('"data":{"id":1,"name":"Anne"},"old":{}}')
    (message,) = values(list(encoder.change(change(Action.INSERT, NOBODY, end=None))))
    assert message.endswith('"data":{"id":1}}')


def test_keys_are_objects_or_arrays_with_column_names_in_lower_case() -> None:
    upper = Column(name="Näme%", type="varchar", raw_type="varchar(9)", charset="utf8mb4")
    table = Table(schema="test", name="t1", columns=(ID, upper), primary_key=(1, 0))
    event = change(Action.INSERT, [b"1", b'"x"'], end=None, table=table)
    (record,) = maxwell().change(event)
    assert (record.key or b"").decode() == '{"database":"test","table":"t1","pk.näme%":"\\"x\\"","pk.id":1}'
    (record,) = maxwell(kafka_key_format="array").change(event)
    assert (record.key or b"").decode() == '["test","t1",[{"näme%":"\\"x\\""},{"id":1}]]'
    (record,) = maxwell(kafka_key_format="array").change(change(Action.INSERT, ANNE, end=None))
    assert record.key == b'["test","t1",[{"id":1}]]'


def test_without_a_primary_key_the_key_has_a_reproducible_uuid_or_an_empty_array() -> None:
    table = Table(schema="test", name="t1", columns=(ID,))
    first, second = maxwell().change(change(Action.INSERT, [b"1"], [b"1"], end=None, table=table))
    again, _ = maxwell().change(change(Action.INSERT, [b"1"], [b"1"], end=None, table=table))
    keys = [json.loads(record.key or b"") for record in (first, second, again)]
    assert list(keys[0]) == ["database", "table", "_uuid"]
    assert keys[0] == keys[2] != keys[1]
    (record,) = maxwell(kafka_key_format="array").change(change(Action.INSERT, [b"1"], end=None, table=table))
    assert record.key == b'["test","t1",[]]'


@pytest.mark.parametrize(
    ("kind", "value", "json_text"),
    [
        (column("bigint", "bigint unsigned", unsigned=True), b"18446744073709551615", "18446744073709551615"),
        (column("tinyint"), b"-128", "-128"),
        (column("year"), b"0000", "0"),
        (column("year"), b"2024", "2024"),
        (column("decimal", "decimal(10,2)"), b"19.90", "19.90"),
        (column("decimal", "decimal(65,30)"), b"-0." + b"0" * 29 + b"1", "-0." + "0" * 29 + "1"),
        (column("float"), b"0.1", "0.1"),
        (column("double"), b"1e20", "1e20"),
        (column("bit", "bit(64)"), b"18446744073709551615", "18446744073709551615"),
        (column("varchar", charset="latin1"), 'né "😀"\\\n\x01'.encode(), '"né \\"😀\\"\\\\\\n\\u0001"'),
        (column("binary", "binary(3)"), b"\x00\xff\x10", '"AP8Q"'),
        (column("blob"), b"", '""'),
        (column("vector"), b"\0\0\x80?", '"AACAPw=="'),
        (column("enum", values=("l'arge", 'a,"b')), b"1", '"l\'arge"'),
        (column("enum", values=("l'arge", 'a,"b')), b"2", '"a,\\"b"'),
        (column("enum", values=("a",)), b"0", '""'),
        (column("enum"), b"3", '"3"'),  # its labels are not known
        (column("set"), b"5", '["5"]'),
        (column("set", values=("a", "b'", "c")), b"6", '["b\'","c"]'),
        (column("set", values=("a",)), b"0", "[]"),
        (column("set", values=tuple(map(str, range(64)))), b"9223372036854775809", '["0","63"]'),
        (column("json"), b'{"a": [1, 52.0]}', '{"a": [1, 52.0]}'),
        (column("json"), b"null", "null"),
        (column("longtext", charset="utf8mb4"), b'{"a": 1}', '"{\\"a\\": 1}"'),
        (column("date"), b"0000-00-00", '"0000-00-00"'),
        (column("datetime", "datetime(3)"), b"2021-02-03 04:05:06.120", '"2021-02-03 04:05:06.120"'),
        (column("timestamp"), b"2021-02-03 04:05:06", '"2021-02-03 04:05:06"'),
        (column("time", "time(6)"), b"-838:59:59.000001", '"-838:59:59.000001"'),
        (column("uuid"), bytes(range(16)), '"00010203-0405-0607-0809-0a0b0c0d0e0f"'),
        (column("inet4"), b"\xc0\xa8\0\1", '"192.168.0.1"'),
        (column("inet6"), b"\0" * 15 + b"\1", '"::1"'),
        (column("inet6"), bytes.fromhex("00010002000300000005000600070008"), '"1:2:3::5:6:7:8"'),
        (column("inet6"), bytes.fromhex("00000002000300000005000600070008"), '"::2:3:0:5:6:7:8"'),
        (column("inet6"), bytes.fromhex("00010002000300040005000600070000"), '"1:2:3:4:5:6:7::"'),
        (column("inet6"), bytes.fromhex("00010000000300000000000600070008"), '"1:0:3::6:7:8"'),
        (column("point"), struct.pack("<IBIdd", 4326, 1, 1, 1, 2), '"POINT (1 2)"'),
        (column("int"), None, "null"),
    ],
)
def test_each_type_has_its_exact_value_in_json(kind: Column, value: bytes | None, json_text: str) -> None:
    assert one_cell(kind, value) == json_text


def test_zero_dates_can_be_null() -> None:
    assert one_cell(column("datetime"), b"0000-00-00 00:00:00", output_null_zerodates=True) == "null"
    assert one_cell(column("date"), b"2021-02-00", output_null_zerodates=True) == '"2021-02-00"'


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (column("varchar", charset="utf8mb4"), b"\xff"),
        (column("point"), b"\0\0\0\0\x01"),
        (column("enum", values=("a", "b")), b"3"),
        (column("set", values=("a",)), b"2"),
    ],
)
def test_an_invalid_value_is_rejected_without_quoting_it(kind: Column, value: bytes) -> None:
    with pytest.raises(PoisonError, match=r"^a row of s\.t has a value that does not fit its column \(\w+\)$"):
        one_cell(kind, value)


def alter(**more: Any) -> DdlStatement:
    fields: dict[str, Any] = {
        "action": Action.ALTER,
        "query": b"alter table `test`.t1 add c int",
        "start": 812,
        "end": 930,
    }
    return DdlStatement(table=TABLE, begin=BEGIN, **{**fields, **more})


def test_ddl_has_the_definitions_before_and_after_and_is_published_to_its_own_topic() -> None:
    kinds = (
        column("bigint", "bigint(20) unsigned", unsigned=True),
        column("datetime", "datetime(6)"),
        column("blob"),
        column("enum", "enum('a','b')", values=("a", "b")),
        column("geomcollection"),
    )
    encoder = maxwell(output_ddl=True, ddl_kafka_topic="ddl", output_binlog_position=True)
    before = Table(schema="test", name="t1", columns=kinds)
    (record,) = encoder.statement(alter(before=before))
    assert list(encoder.topics()) == [record.topic] == ["ddl"]
    assert values([record]) == [
        '{"type":"table-alter","database":"test","table":"t1","old":{"database":"test","charset":null,"table":"t1",'
        '"columns":[{"type":"bigint","name":"c","signed":false},{"type":"datetime","name":"c","column-length":6},'
        '{"type":"blob","name":"c","charset":"binary"},{"type":"enum","name":"c","enum-values":["a","b"]},'
        '{"type":"geometrycollection","name":"c"}],"primary-key":[]},'
        '"def":{"database":"test","charset":"utf8mb4","table":"t1","columns":[{"type":"int","name":"id","signed":true},'
        '{"type":"varchar","name":"name","charset":"utf8mb4"}],"primary-key":["id"]},'
        '"ts":1700000000123,"sql":"alter table `test`.t1 add c int","position":"mariadb-bin.000003:812"}'
    ]


def test_output_ddl_publishes_creates_and_drops() -> None:
    encoder = maxwell(output_ddl=True)
    (created,) = encoder.statement(alter(action=Action.CREATE))
    (dropped,) = encoder.statement(alter(action=Action.DROP))
    assert list(json.loads(created.value or b"")) == ["type", "database", "table", "def", "ts", "sql"]
    assert list(json.loads(dropped.value or b"")) == ["type", "database", "table", "ts", "sql"]
    assert created.topic is None
    assert list(encoder.topics()) == []
    assert not list(encoder.statement(alter(action=Action.TRUNCATE)))
    assert not list(maxwell().statement(alter()))


def test_rows_of_a_dump_are_bootstrap_messages() -> None:
    encoder = maxwell()
    position = Position(file="f.000001", offset=4)
    first = SnapshotRows(TABLE, position, 1_700_000_003_000_000, [[b"1", None]], first_of_table=True)
    last = SnapshotRows(TABLE, position, 1_700_000_003_000_000, [[b"2", None]], last_of_table=True)
    records = [*encoder.snapshot(first), *encoder.snapshot(last)]
    assert values(records) == [
        '{"database":"test","table":"t1","type":"bootstrap-start","ts":1700000003,"data":{}}',
        '{"database":"test","table":"t1","type":"bootstrap-insert","ts":1700000003,"data":{"id":1,"name":null}}',
        '{"database":"test","table":"t1","type":"bootstrap-insert","ts":1700000003,"data":{"id":2,"name":null}}',
        '{"database":"test","table":"t1","type":"bootstrap-complete","ts":1700000003,"data":{}}',
    ]
    assert records[0].key == b'{"database":"test","table":"t1","pk.id":null}'
    assert b"_uuid" in (records[-1].key or b"")
