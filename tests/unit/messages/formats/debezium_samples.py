"""A table, a transaction and its changes, for the tests of Debezium's formats."""

import json
from typing import Any

from databus_core.events import Action, Begin, Column, Row, Table
from databus_messages.formats.base import Change, DdlStatement, MessageSource, Record
from databus_messages.formats.debezium.json import DebeziumJson
from databus_messages.formats.debezium.options import JsonOptions

MYSQL = MessageSource("srv1", "mysql", "db1", 3306)
MARIADB = MessageSource("srv1", "mariadb", "db1", 3306)
T1 = Table(
    schema="test",
    name="t1",
    columns=(
        Column(name="id", type="int", raw_type="int"),
        Column(name="name", type="varchar", raw_type="varchar(20)", nullable=True, charset="utf8mb4"),
    ),
    primary_key=(0,),
)
BEGIN = Begin(1, "", "mysql-bin.000003", 223344, 7, 1_700_000_000_000_000)
NOW_NS = 1_700_000_000_042_123_456
SOURCE = (
    '{"version":"3.6.1.Final","connector":"mysql","name":"srv1","ts_ms":1700000000000,"snapshot":"false","db":"test",'
    '"sequence":null,"ts_us":1700000000000000,"ts_ns":1700000000000000000,"table":"t1","server_id":223344,"gtid":null,'
    '"file":"mysql-bin.000003","pos":484,"row":0,"thread":7,"query":null}'
)


def change(
    action: Action,
    *rows: Row,
    table: Table = T1,
    begin: Begin = BEGIN,
    start: int = 484,
    first: int = 0,
    query: bytes | None = None,
) -> Change:
    """Return a change that has all rows of its event, which is 76 bytes long."""
    changes = len(rows) // (2 if action is Action.UPDATE else 1)
    return Change(table, begin, action, start, start + 76, first, range(first, first + changes), rows, query)


def one_column(kind: str, raw_type: str = "", **attributes: object) -> Table:
    """Return a table with one column, `v`, and without a primary key."""
    column = Column(name="v", type=kind, raw_type=raw_type or kind, **attributes)  # type: ignore[arg-type]
    return Table(schema="test", name="t1", columns=(column,))


def schemaless(source: MessageSource = MYSQL, **options: object) -> DebeziumJson:
    return debezium(source, schemas_enable=False, **options)


def debezium(source: MessageSource = MYSQL, **options: object) -> DebeziumJson:
    format_ = DebeziumJson(source, JsonOptions.model_validate(options))
    format_.clock = lambda: NOW_NS
    return format_


def value(record: Record) -> dict[str, Any]:
    assert record.value is not None
    decoded: dict[str, Any] = json.loads(record.value)
    return decoded


def statement(action: Action, query: bytes, table: Table = T1) -> DdlStatement:
    return DdlStatement(table, BEGIN, action, query, 484, 560)
