"""What is special about replicas in MySQL and MariaDB: keys, unique indexes, tables that they do not have."""

from collections.abc import Iterator, Sequence

import pytest
from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.exc import IntegrityError, ProgrammingError

from databus import Bookmark
from databus.block import Block
from databus.formats.databus import DatabusRows
from databus.origin import Origin
from databus.replica import Replica
from databus.sql_store import SqlStore
from databus.sql_table import Image
from databus_core.definitions import encode_definition
from databus_core.errors import SchemaMismatch
from databus_core.events import Action, Column, Table

BOOKMARK = Bookmark(pipeline="p", tables=["shop.*"], offsets={})
LABELS = ("x", "X")


@pytest.fixture(params=["mysql", "mariadb"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    engine = create_engine(request.getfixturevalue(f"{request.param}_replica_url"))
    yield engine
    engine.dispose()


class Shop:
    """A replica, and the rows of its table."""

    def __init__(self, engine: Engine, *types: str, keys: int = 1, name: str = "one") -> None:
        columns = tuple(
            Column(name=f"c{index}", type="", raw_type=kind, values=LABELS if kind == "enum" else ())
            for index, kind in enumerate(types)
        )
        self._table = Table(schema="shop", name=name, columns=columns, primary_key=tuple(range(keys)))
        self._engine = engine
        self._replica = Replica(engine, SqlStore(engine), None)
        with engine.begin() as connection:
            SqlStore(engine)._table.create(connection, checkfirst=True)

    def create(self) -> None:
        self._replica.create(self._table)

    def write(self, action: Action, *images: Image) -> None:
        self._replica.write([self.block(action, *images)], BOOKMARK)

    def block(self, action: Action, *images: Image) -> Block:
        return Block(action, DatabusRows(encode_definition(self._table).encode()), Origin(), list(images))

    def rows(self) -> list[Sequence[object]]:
        with self._engine.begin() as connection:
            return [tuple(row) for row in self.query(connection, f"SELECT * FROM {self._table.name} ORDER BY c0, c1")]

    def query(self, connection: Connection, statement: str) -> Sequence[Sequence[object]]:
        return connection.execute(text(statement)).all()


def test_keys_that_only_look_alike_are_rows_of_their_own(engine: Engine) -> None:
    shop = Shop(engine, "varchar(9)", "enum", "varbinary(9)", "int(11)", keys=3)
    names = ["a", "A", "ä", "a ", "a\0", "😀", ""]
    rows: list[Image] = [[name.encode(), label, b"\0", b"1"] for name in names for label in (b"0", b"1", b"2")]
    shop.write(Action.INSERT, *rows)
    shop.write(Action.INSERT, *[[*row[:3], b"2"] for row in rows])
    shop.write(Action.DELETE, [b"a", b"1", b"\0", False])
    expected = {(name, label, b"\0", 2) for name in names for label in ("", "x", "X")} - {("a", "x", b"\0", 2)}
    assert set(shop.rows()) == expected


def test_a_unique_index_never_costs_another_row(engine: Engine) -> None:
    shop = Shop(engine, "int(11)", "int(11)")
    shop.write(Action.INSERT, [b"1", b"5"], [b"2", b"6"])
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE one ADD UNIQUE (c1)"))
    shop.write(Action.INSERT, [b"1", b"5"], [b"2", b"7"])
    with pytest.raises(IntegrityError):
        shop.write(Action.INSERT, [b"3", b"8"], [b"4", b"5"])
    assert shop.rows() == [(1, 5), (2, 7)]


def test_a_row_that_is_wider_than_the_database_allows_is_kept_as_text(engine: Engine) -> None:
    wide = b"x" * 60_000
    shop = Shop(engine, "varchar(255)", "varchar(60000)", *["varchar(255)"] * 70)
    shop.write(Action.INSERT, [b"k" * 255, wide, *[b"y" * 255] * 70])
    (row,) = shop.rows()
    assert row == ("k" * 255, wide.decode(), *["y" * 255] * 70)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("text", "used in key specification without a key length"), ("varchar(800)", "Specified key was too long")],
)
def test_a_key_that_the_database_does_not_have(engine: Engine, kind: str, reason: str) -> None:
    with pytest.raises(SchemaMismatch, match=rf"shop\.one cannot be created: .*{reason}.*; leave the column out"):
        Shop(engine, kind, "int(11)").create()


def test_a_value_that_only_the_database_refuses(engine: Engine) -> None:
    """MariaDB 11.5 has TIMESTAMPs until 2106. Nothing of its transaction is stored."""
    shop = Shop(engine, "int(11)", "timestamp(3)")
    shop.write(Action.INSERT, [b"1", b"2038-01-19 03:14:07.999"])
    with pytest.raises(SchemaMismatch, match=r"^a value of shop.one cannot be stored: MySQL error 1292; leave"):
        shop.write(Action.INSERT, [b"2", None], [b"3", b"2106-01-19 03:14:08.000"])
    assert [row[0] for row in shop.rows()] == [1]


def test_timestamps_are_in_utc_whatever_the_sessions_time_zone_is(engine: Engine) -> None:
    shop = Shop(engine, "timestamp", "timestamp")
    with engine.begin() as connection:
        connection.execute(text("SET time_zone = '+05:00', sql_mode = 'ANSI_QUOTES'"))
    shop.write(Action.INSERT, [b"2026-11-27 10:00:00", b"0000-00-00 00:00:00"])
    with engine.begin() as connection:
        found = shop.query(connection, "SELECT UNIX_TIMESTAMP(c0), c1 + 0 FROM one")
    assert [tuple(row) for row in found] == [(1795773600, 0)]


def test_a_bookmark_longer_than_a_text_of_mysql(engine: Engine) -> None:
    store = SqlStore(engine)
    assert store._select() is None
    long = Bookmark(pipeline="p", tables=["x" * 70_000], offsets={})
    store.write(long)
    assert Bookmark.parse(store._select() or "") == long


def test_tables_are_created_before_the_first_row(engine: Engine) -> None:
    """Each CREATE commits what was done before it."""
    shop, other = Shop(engine, "int(11)", "int(11)"), Shop(engine, "int(11)", "int(11)", name="two")
    shop.create()
    store = SqlStore(engine)
    with engine.begin() as connection:
        connection.execute(text("RENAME TABLE databus_bookmarks TO moved"))
    with pytest.raises(ProgrammingError, match="databus_bookmarks"):
        Replica(engine, store, None).write(
            [each.block(Action.INSERT, [b"1", b"1"]) for each in (shop, other)], BOOKMARK
        )
    assert shop.rows() == other.rows() == []
