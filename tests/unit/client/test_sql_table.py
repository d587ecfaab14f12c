"""Changes of rows in the table of a replica, in SQLite."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, create_engine, select

from databus.sql_database import database_of
from databus.sql_table import Image, ReplicaTable
from databus_core.events import Column, Table

ITEMS = Table(
    schema="shop",
    name="items",
    columns=tuple(
        Column(name=name, type="", raw_type=kind) for name, kind in (("id", "int(11)"), ("n", "int(11)"), ("t", "text"))
    ),
    primary_key=(0,),
)


@pytest.fixture
def connection() -> Iterator[Connection]:
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        yield connection
    engine.dispose()


def rows_after(connection: Connection, *images: Image) -> list[tuple[object, ...]]:
    """Insert a row, update it, and return what is there."""
    table = ReplicaTable(ITEMS, None, database_of(connection.engine))
    table.table.create(connection)
    table.insert(connection, [[b"1", b"10", b"text"]])
    table.update(connection, images)
    return [tuple(row) for row in connection.execute(select(table.table))]


def test_an_update_moves_a_row_to_another_key(connection: Connection) -> None:
    assert rows_after(connection, [b"1", b"10", b"text"], [b"2", b"11", None]) == [(2, 11, None)]


def test_an_update_without_all_columns_keeps_the_others_also_with_another_key(connection: Connection) -> None:
    assert rows_after(connection, [b"1", b"10", False], [b"2", b"11", False]) == [(2, 11, "text")]
