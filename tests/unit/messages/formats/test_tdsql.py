"""The `tdsql` format, against the samples in TDSQL's documentation."""

import json
from collections.abc import Iterable
from typing import Any
from uuid import UUID

import pytest

from databus_binlog import Flavor, Position
from databus_core.errors import PoisonError
from databus_core.events import Action, Begin, Column, Row, Table
from databus_messages.formats.base import Change, DdlStatement, MessageSource, Record, SnapshotRows, TransactionEnd
from databus_messages.formats.tdsql import Tdsql, TdsqlOptions

COLUMNS = (
    Column(name="id", type="int", raw_type="int(11)"),
    Column(name="name", type="varchar", raw_type="varchar(20)", charset="utf8mb4"),
)
TABLE = Table(schema="testdb", name="testtable", columns=COLUMNS)
GTIDS: dict[Flavor, str] = {
    "mariadb": "0-2670193178-726233561",
    "mysql": "896e7882-18fe-11ef-ab88-22222d34d411:5",
}


def tdsql(flavor: Flavor = "mariadb", **options: Any) -> Tdsql:
    return Tdsql(MessageSource("shop", flavor, "10.0.0.1", 3306), TdsqlOptions(**options))


def begin(flavor: Flavor = "mariadb", gtid: str | None = None) -> Begin:
    return Begin(1, GTIDS[flavor] if gtid is None else gtid, "bin.000001", 1, 0, 1_511_350_073_999_999)


def change(action: Action, *rows: Row, flavor: Flavor = "mariadb", **more: Any) -> Change:
    fields = {"table": TABLE, "start": 400, "end": 500, "first": 0} | more
    return Change(action=action, rows=list(rows), begin=begin(flavor), ordinals=range(len(rows)), **fields)


def values(records: Iterable[Record]) -> list[str]:
    return [(record.value or b"").decode() for record in records]


def indexes(records: Iterable[Record]) -> list[str]:
    return [json.loads(value)["event_index"] for value in values(records)]


def test_an_update_is_encoded_as_in_the_documentations_sample() -> None:
    event = change(Action.UPDATE, [b"1", b"name1"], [b"1", b"name2"], query=b"update testtable set name = 'name2'")
    encoder = tdsql()
    encoder.begin(begin())
    assert values(encoder.change(event)) == [
        '{"logtype":"mysqlbinlog","eventtype":24,"eventtypestr":"update","db":"testdb","table":"testtable",'
        '"localip":"10.0.0.1","localport":3306,"begintime":1511350073,"gtid":"0-2670193178-726233561",'
        '"event_index":"4","where":["1","\'name1\'"],"field":["1","\'name2\'"]}'
    ]


@pytest.mark.parametrize(("flavor", "kinds"), [("mariadb", (162, 23, 25, 16)), ("mysql", (33, 30, 32, 16))])
def test_a_transaction_has_messages_for_its_gtid_rows_and_xid(flavor: Flavor, kinds: tuple[int, ...]) -> None:
    encoder = tdsql(flavor)
    records = [
        *encoder.begin(begin(flavor)),
        *encoder.change(change(Action.INSERT, [b"1", None], flavor=flavor)),
        *encoder.change(change(Action.DELETE, [b"1", b""], flavor=flavor, first=1, start=500, end=600)),
        *encoder.end(begin(flavor), TransactionEnd(39, 700, 2)),
    ]
    messages = [json.loads(value) for value in values(records)]
    assert tuple(message["eventtype"] for message in messages) == kinds
    assert [message["eventtypestr"] for message in messages] == ["gtid", "insert", "delete", "xid"]
    assert [(message["where"], message["field"]) for message in messages[1:3]] == [
        ([], ["1", "NULL"]),
        (["1", "''"], []),
    ]
    assert {message["gtid"] for message in messages} == {GTIDS[flavor]}
    assert values(records)[-1].endswith('"xid":"39"}')
    assert (messages[-1]["db"], messages[-1]["table"]) == ("testdb", "testtable")


def test_event_index_counts_mysqls_begin() -> None:
    encoder, row = tdsql("mysql"), [b"1", None]
    records = [
        *encoder.begin(begin("mysql")),
        *encoder.change(change(Action.INSERT, row, row, flavor="mysql")),
        *encoder.end(begin("mysql"), TransactionEnd(39, 531, 1)),
    ]
    assert indexes(records) == ["1", "4", "4", "5"]


def test_event_index_counts_table_maps_and_logged_statements_and_counts_a_split_event_once() -> None:
    encoder, row = tdsql(), [b"1", None]
    encoder.begin(begin())
    events = [
        change(Action.INSERT, row),
        change(Action.INSERT, row),
        change(Action.INSERT, row, first=2, start=500, end=600),
        change(Action.INSERT, row, first=3, start=700, end=800),
        change(Action.INSERT, row, first=4, start=900, end=990, query=b"insert"),
    ]
    assert [indexes(encoder.change(event))[0] for event in events] == ["3", "3", "4", "6", "9"]


def test_a_ddl_statement_is_published_after_its_gtid() -> None:
    statement = DdlStatement(TABLE, begin("mysql"), Action.CREATE, b"create table t(a\nint)", 300, 400)
    gtid, query = tdsql("mysql").statement(statement)
    assert values([query]) == [
        '{"logtype":"mysqlbinlog","eventtype":2,"eventtypestr":"query","db":"testdb","table":"testtable",'
        f'"localip":"10.0.0.1","localport":3306,"begintime":1511350073,"gtid":"{GTIDS["mysql"]}",'
        '"event_index":"2","sql":"create table t(a\\nint)"}'
    ]
    assert indexes([gtid]) == ["1"]


def test_a_transaction_without_gtid_or_xid_has_no_message_for_them() -> None:
    assert not list(tdsql().begin(begin(gtid="")))
    assert not list(tdsql().end(begin(), TransactionEnd(None, 700, 1)))


def test_rows_of_a_dump_are_inserts() -> None:
    snapshot = SnapshotRows(TABLE, Position(file="f.000001", offset=4), 1_511_350_073_000_000, [[b"1", b"a"]])
    (message,) = values(tdsql().snapshot(snapshot))
    assert message.endswith('"gtid":"","event_index":"0","where":[],"field":["1","\'a\'"]}')


def column(kind: str, raw_type: str = "", **more: Any) -> Column:
    return Column(name="c", type=kind, raw_type=raw_type or kind, **more)


@pytest.mark.parametrize(
    ("kind", "value", "mysqlbinlog", "mysql"),
    [
        (column("bigint"), b"18446744073709551615", "18446744073709551615", "18446744073709551615"),
        (column("decimal"), b"-0.10", "-0.10", "-0.10"),
        (column("double"), b"1e20", "1e20", "1e20"),
        (column("year"), b"0000", "0000", "0000"),
        (column("enum", values=("a", "b")), b"2", "2", "2"),
        (column("set", values=("a", "b")), b"3", "3", "3"),
        (column("bit", "bit(4)"), b"5", "b'0101'", "b'0101'"),
        (column("date"), b"0000-00-00", "'0000-00-00'", "'0000-00-00'"),
        (column("time", "time(1)"), b"-838:59:59.9", "'-838:59:59.9'", "'-838:59:59.9'"),
        (column("timestamp"), b"2021-02-03 04:05:06", "'2021-02-03 04:05:06'", "'2021-02-03 04:05:06'"),
        (column("text", charset="gbk"), "é'\\\n\r😀".encode(), r"'é\'\\\n\x0d😀'", r"'é\'\\\n\r😀'"),
        (column("json"), b'{"a": "b"}', '\'{"a": "b"}\'', '\'{"a": "b"}\''),
        (column("blob"), b"a'\0\xff", r"'a\'\x00\xff'", "x'612700ff'"),
        (column("point"), b"\0\0\0\0\1", r"'\x00\x00\x00\x00\x01'", "x'0000000001'"),
        (column("uuid"), bytes(16), f"'{UUID(int=0)}'", f"'{UUID(int=0)}'"),
    ],
)
def test_values_are_sql_literals(kind: Column, value: bytes, mysqlbinlog: str, mysql: str) -> None:
    event = change(Action.DELETE, [value], table=Table(schema="s", name="t", columns=(kind,)))
    for encoder, literal in ((tdsql(), mysqlbinlog), (tdsql(dialect="mysql"), mysql)):
        (record,) = values(encoder.change(event))
        assert json.loads(record)["where"] == [literal]


def test_text_that_is_not_utf8_is_rejected_without_quoting_it() -> None:
    with pytest.raises(PoisonError, match=r"^a row of testdb\.testtable has a value that does not fit its column"):
        list(tdsql().change(change(Action.INSERT, [b"1", b"\xff"])))


def test_a_statement_that_is_not_utf8_is_rejected_before_its_gtid_is_published() -> None:
    with pytest.raises(PoisonError, match=r"^a statement on testdb\.testtable is not in UTF-8$"):
        next(
            iter(tdsql().statement(DdlStatement(TABLE, begin("mysql"), Action.CREATE, b"create table \xff", 300, 400)))
        )
