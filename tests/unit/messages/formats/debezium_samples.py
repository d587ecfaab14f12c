"""A table, a transaction and its changes, for the tests of Debezium's formats."""

from databus.events import Action, Begin, Column, Row, Table
from databus_messages.formats.base import Change, MessageSource

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
