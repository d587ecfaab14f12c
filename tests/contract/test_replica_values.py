"""Every value of the matrix is the same in a replica, or it is refused in one line that names the column."""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import product
from struct import pack, unpack
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import ColumnElement, Connection, Engine, Text, cast, create_engine, literal_column, select, text

from contract.published import publish
from databus.block import Block
from databus.formats.databus import DatabusRows
from databus.origin import Origin
from databus.replica import Replica
from databus.sql_database import database_of
from databus.sql_store import SqlStore
from databus.sql_table import ReplicaTable
from databus.values import converter
from databus_core import events
from databus_core.definitions import encode_definition, sized_type
from databus_core.errors import SchemaMismatch
from databus_core.events import Action
from devstack import Server


@pytest.fixture(params=["sqlite", "postgresql", "mysql", "mariadb"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    engine = create_engine(request.getfixturevalue(f"{request.param}_replica_url"))
    yield engine
    engine.dispose()


NUMBER = events.Column(name="k", type="int", raw_type="int")
NAME = events.Column(name="name", type="varchar", raw_type="varchar(9)")
NO_DATE = "no other database has this date"
MYSQL = ("mysql", "mariadb")


class OneColumn:
    """A table of the replica with a key and one column of the source."""

    def __init__(self, column: events.Column, engine: Engine, name: str = "one") -> None:
        self._column = replace(column, name="v")
        self._read = converter(self._column)
        self._dialect = engine.dialect.name
        definition = events.Table(schema="shop", name=name, columns=(NUMBER, self._column), primary_key=(0,))
        self._table = ReplicaTable(definition, None, database_of(engine))

    def store(self, connection: Connection, cells: Iterable[bytes | None]) -> set[str]:
        """Store values in a new table; return why some were refused. All others must be there, and equal."""
        self._table.table.create(connection)
        wanted, refused = dict[int, str](), set[str]()
        for number, cell in enumerate(cells):
            try:
                self._table.insert(connection, [[b"%d" % number, cell]])
            except SchemaMismatch as error:
                assert "\n" not in str(error)
                place, reason, _ = re.split(" cannot be stored: |; ", str(error))
                assert place.startswith("a value of column v of shop.")
                refused.add(reason)
            else:
                wanted[number] = "None" if cell is None else self._expected(cell)
        found = connection.execute(select(self._table.table.c.k, self._shown()))
        assert {number: text_of(each) for number, each in found} == wanted, self._column
        return refused

    def _shown(self) -> ColumnElement[Any]:
        """Return an expression that has the whole value: a server prints a FLOAT with six digits."""
        value, kind = self._table.table.c.v, sized_type(self._column)[0]
        if kind == "json":
            return cast(value, Text)
        if self._dialect in MYSQL and kind in ("bit", "float"):
            return literal_column(f"CAST(v AS {'UNSIGNED' if kind == 'bit' else 'DOUBLE'})")
        return value

    def _expected(self, cell: bytes) -> str:
        """Return the text of the value that the replica should have."""
        kind, value = sized_type(self._column)[0], self._read(cell)
        if kind == "json" or (kind == "time" and self._dialect == "sqlite"):
            return cell.decode()
        if kind == "set":
            return ",".join(label for label in self._column.values if label in value)
        if value == 0 and kind == "double" and self._dialect in ("sqlite", "mariadb"):
            return "0.0"  # they have no negative zero
        if kind == "float" and self._dialect in MYSQL:
            return str(*unpack("f", pack("f", value)))
        return str(cell) if kind == "vector" else text_of(value)


def text_of(value: Any) -> str:
    """Return a value as text; a moment in UTC, without its zone."""
    return str(value.astimezone(UTC).replace(tzinfo=None) if isinstance(value, datetime) and value.tzinfo else value)


#: from the other kind of server to MySQL and MariaDB: one with other types
PAIRS = [("mariadb", "mysql"), ("mysql", "mariadb"), *product(MYSQL, ("sqlite", "postgresql"))]


@pytest.mark.parametrize(("source", "engine"), PAIRS, indirect=True)
async def test_every_value_is_the_same_or_refused(source: Server, schema: str, engine: Engine) -> None:
    columns = dict[events.Column, dict[bytes | None, None]]()
    async for block in (await publish(source, schema)).blocks("databus"):
        assert isinstance(block.rows, DatabusRows)
        for image in block.images:
            for column, cell in zip(block.rows.table.columns, image, strict=True):
                columns.setdefault(column, {})[cell] = None
    refused = set[tuple[str, str]]()
    with database_of(engine).begin(engine) as connection:
        for number, (column, cells) in enumerate(columns.items()):
            reasons = OneColumn(column, engine, f"column{number}").store(connection, cells)
            refused |= {(sized_type(column)[0], reason) for reason in reasons}
    assert len(columns) > 100
    dates = () if engine.dialect.name in MYSQL else ("date", "datetime", "timestamp")
    assert refused == {(kind, NO_DATE) for kind in dates}


def test_text_with_a_zero_byte(engine: Engine) -> None:
    column = events.Column(name="v", type="varchar", raw_type="varchar(9)")
    with engine.begin() as connection:
        refused = OneColumn(column, engine).store(connection, [b"a\0b", b"ab"])
    assert refused == ({"PostgreSQL has no text with a zero byte"} if engine.dialect.name == "postgresql" else set())


def test_json_null_is_not_null(engine: Engine) -> None:
    column = events.Column(name="v", type="json", raw_type="json")
    with engine.begin() as connection:
        assert OneColumn(column, engine).store(connection, [b"null", None]) == set()


def test_a_value_that_only_the_database_refuses(postgresql_replica_url: str) -> None:
    """Here because somebody has made the column smaller."""
    definition = encode_definition(events.Table(schema="shop", name="one", columns=(NUMBER, NAME), primary_key=(0,)))
    engine = create_engine(postgresql_replica_url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE one (k INTEGER PRIMARY KEY, name VARCHAR(2))"))
    replica = Replica(engine, SqlStore(engine), None)
    block = Block(Action.INSERT, DatabusRows(definition.encode()), Origin(), [[b"1", b"secret"]])
    with pytest.raises(
        SchemaMismatch, match=r"value of shop.one cannot be stored: StringDataRightTruncation"
    ) as caught:
        replica.load(block)
    assert "secret" not in str(caught.value)
    engine.dispose()
