"""Every value of the matrix is the same in a replica, or it is refused in one line that names the column."""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Connection, Engine, Text, cast, create_engine, select, text

from contract.published import publish
from databus.block import Block
from databus.formats.databus import DatabusRows
from databus.origin import Origin
from databus.replica import Replica
from databus.sql_store import SqlStore
from databus.sql_table import ReplicaTable
from databus.values import converter
from databus_core import events
from databus_core.definitions import encode_definition, sized_type
from databus_core.errors import SchemaMismatch
from databus_core.events import Action
from devstack import Server


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    url = f"sqlite:///{tmp_path}/replica.db" if request.param == "sqlite" else request.getfixturevalue("replica_url")
    engine = create_engine(url)
    yield engine
    engine.dispose()


NUMBER = events.Column(name="k", type="int", raw_type="int")
NAME = events.Column(name="name", type="varchar", raw_type="varchar(9)")
NO_DATE = "no other database has this date"


class OneColumn:
    """A table of the replica with a key and one column of the source."""

    def __init__(self, column: events.Column, dialect: str, name: str = "one") -> None:
        self._column = replace(column, name="v")
        self._read = converter(self._column)
        self._dialect = dialect
        definition = events.Table(schema="shop", name=name, columns=(NUMBER, self._column), primary_key=(0,))
        self._table = ReplicaTable(definition, None, dialect)

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
        value = self._table.table.c.v
        shown = cast(value, Text) if sized_type(self._column)[0] == "json" else value
        found = connection.execute(select(self._table.table.c.k, shown))
        assert {number: text_of(each) for number, each in found} == wanted, self._column
        self._table.table.drop(connection)
        return refused

    def _expected(self, cell: bytes) -> str:
        """Return the text of the value that the replica should have."""
        kind, value = sized_type(self._column)[0], self._read(cell)
        if kind == "json" or (kind == "time" and self._dialect == "sqlite"):
            return cell.decode()
        if kind == "set":
            return ",".join(label for label in self._column.values if label in value)
        if value == 0 and kind == "double" and self._dialect == "sqlite":
            return "0.0"  # it has no negative zero
        return str(cell) if kind == "vector" else text_of(value)


def text_of(value: Any) -> str:
    """Return a value as text; a moment in UTC, without its zone."""
    return str(value.astimezone(UTC).replace(tzinfo=None) if isinstance(value, datetime) and value.tzinfo else value)


async def test_every_value_is_the_same_or_refused(source: Server, schema: str, engine: Engine) -> None:
    columns = dict[events.Column, dict[bytes | None, None]]()
    async for block in (await publish(source, schema)).blocks("databus"):
        assert isinstance(block.rows, DatabusRows)
        for image in block.images:
            for column, cell in zip(block.rows.table.columns, image, strict=True):
                columns.setdefault(column, {})[cell] = None
    refused = set[tuple[str, str]]()
    with engine.begin() as connection:
        for number, (column, cells) in enumerate(columns.items()):
            reasons = OneColumn(column, engine.dialect.name, f"column{number}").store(connection, cells)
            refused |= {(sized_type(column)[0], reason) for reason in reasons}
    assert len(columns) > 100
    assert refused == {(kind, NO_DATE) for kind in ("date", "datetime", "timestamp")}


def test_text_with_a_zero_byte(engine: Engine) -> None:
    column = events.Column(name="v", type="varchar", raw_type="varchar(9)")
    with engine.begin() as connection:
        refused = OneColumn(column, engine.dialect.name).store(connection, [b"a\0b", b"ab"])
    assert refused == ({"PostgreSQL has no text with a zero byte"} if engine.dialect.name == "postgresql" else set())


def test_json_null_is_not_null(engine: Engine) -> None:
    column = events.Column(name="v", type="json", raw_type="json")
    with engine.begin() as connection:
        assert OneColumn(column, engine.dialect.name).store(connection, [b"null", None]) == set()


def test_a_value_that_only_the_database_refuses(replica_url: str) -> None:
    """Here because somebody has made the column smaller."""
    definition = encode_definition(events.Table(schema="shop", name="one", columns=(NUMBER, NAME), primary_key=(0,)))
    engine = create_engine(replica_url)
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
