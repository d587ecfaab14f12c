"""The decoder and the library mysql-replication, an independent implementation, agree on random rows of a log."""

import asyncio
import json
import secrets
from datetime import date, datetime

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common.connections import session_on
from databus_binlog import Engine, Position, Rows
from devstack import Server

CHARACTERS = st.characters(codec="utf-8")
#: generates values of a column as SQL literals
Literals = st.SearchStrategy[str]


def integers(bits: int, *, signed: bool) -> Literals:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1).map(lambda n: str(n if signed else n % 2**bits))


def decimals(precision: int, scale: int) -> Literals:
    return st.decimals(-(10 ** (precision - scale)) + 1, 10 ** (precision - scale) - 1, places=scale).map(str)


def floats(width: int) -> Literals:
    return st.floats(allow_nan=False, allow_infinity=False, width=width).map(repr)


def texts(longest: int, codec: str = "utf-8") -> Literals:
    return st.text(st.characters(codec=codec), max_size=longest).map(quoted)


def quoted(text: str) -> str:
    return f"_utf8mb4 x'{text.encode().hex()}'"


def raw(longest: int) -> Literals:
    return st.binary(max_size=longest).map(lambda data: f"x'{data.hex()}'")


def moments(first: datetime, last: datetime) -> Literals:
    return st.datetimes(first, last).map(lambda moment: f"'{moment}'")


def documents() -> Literals:
    scalars = (
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(CHARACTERS)
    )
    nested = st.recursive(
        scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(CHARACTERS), inner), max_leaves=8
    )
    return nested.map(lambda value: quoted(json.dumps(value)))


CLOCK = st.tuples(st.integers(0, 837), st.integers(0, 59), st.integers(0, 59)).map("{0[0]}:{0[1]:02}:{0[2]:02}".format)

#: types and values that the library reads correctly; engines/misread.py lists those that it misreads
COLUMNS: dict[str, Literals] = {
    **{
        f"{kind}INT": integers(bits, signed=True)
        for kind, bits in {"TINY": 8, "SMALL": 16, "MEDIUM": 24, "BIG": 64}.items()
    },
    **{
        f"{kind}INT UNSIGNED": integers(bits, signed=False)
        for kind, bits in {"TINY": 8, "MEDIUM": 24, "": 32, "BIG": 64}.items()
    },
    **{f"DECIMAL({p},{s})": decimals(p, s) for p, s in ((1, 0), (12, 3), (9, 9), (38, 20), (65, 30))},
    "FLOAT": floats(32),
    "DOUBLE": floats(64),
    "BIT(33)": st.integers(0, 2**33 - 1).map(str),
    "YEAR": st.integers(1901, 2155).map(str) | st.just("0"),
    "DATE": st.dates(date(1, 1, 1)).map(lambda day: f"'{day}'"),
    "TIME": st.builds("'{}{}'".format, st.sampled_from(["", "-"]), CLOCK),
    "TIME(3)": st.builds("'{}.{:03}'".format, CLOCK, st.integers(0, 999)),
    "DATETIME": moments(datetime(1000, 1, 1), datetime(9999, 1, 1)),
    "DATETIME(6)": moments(datetime(1000, 1, 1), datetime(9999, 1, 1)),
    "TIMESTAMP(2)": moments(datetime(1970, 1, 2), datetime(2038, 1, 1)),
    "ENUM('a','b','ß')": st.sampled_from(["'a'", "'b'", "'ß'"]),
    "SET('a','b','c','d','e','f','g','h','ß')": st.sets(st.sampled_from("abcdefghß")).map(lambda s: f"'{','.join(s)}'"),
    "CHAR(70) CHARACTER SET utf8mb4": texts(70),
    "VARCHAR(90) CHARACTER SET utf8mb4": texts(90),
    "VARCHAR(90) CHARACTER SET latin1": texts(90, "cp1252"),
    "TEXT CHARACTER SET cp1251": texts(90, "cp1251"),
    "BINARY(9)": raw(9),
    "VARBINARY(300)": raw(300),
    "MEDIUMBLOB": raw(300),
    "POINT": st.builds("ST_GeomFromText('POINT({} {})')".format, st.integers(-999, 999), st.integers(-999, 999)),
}
ROW = st.tuples(*(st.just("NULL") | values for values in COLUMNS.values()), documents())


async def read(server: Server, engine: Engine, start: Position, schema: str) -> list[tuple[str, list[object]]]:
    """Return action and row images of each of the schema's rows events, from a position to the end of the log."""
    async with session_on(server) as session:
        server_id = secrets.randbelow(2**31) + 1000
        stream = await session.dump(
            start, server_id=server_id, follow=False, wanted=lambda name, _: name == schema, engine=engine
        )
        return [
            (event.action, event.images()) async for events in stream for event in events if isinstance(event, Rows)
        ]


async def test_both_engines_return_the_same_random_rows(source, schema, execute, queries):
    columns = ", ".join(f"c{number} {kind} NULL" for number, kind in enumerate(COLUMNS))
    await execute(f"CREATE TABLE t (id INT PRIMARY KEY, {columns}, c{len(COLUMNS)} JSON NOT NULL)")
    await execute("SET time_zone = '+00:00'")
    loop = asyncio.get_running_loop()

    @settings(derandomize=True, max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.tuples(ROW, ROW), min_size=1, max_size=4))
    def agree(changes: list[tuple[tuple[str, ...], tuple[str, ...]]]) -> None:
        asyncio.run_coroutine_threadsafe(compare(changes), loop).result()

    async def compare(changes: list[tuple[tuple[str, ...], tuple[str, ...]]]) -> None:
        end = await queries.current_position()
        start = Position(file=end.file, offset=end.offset)
        await execute("BEGIN")
        rows = [f"({', '.join([str(number), *before])})" for number, (before, _) in enumerate(changes)]
        await execute(f"INSERT INTO t VALUES {', '.join(rows)}")
        for number, (_, after) in enumerate(changes):
            new = ", ".join(f"c{column} = {value}" for column, value in enumerate(after))
            await execute(f"UPDATE t SET {new} WHERE id = {number}")
        await execute("DELETE FROM t")
        await execute("COMMIT")
        ours, theirs = [await read(source, engine, start, schema) for engine in ("native", "mysql-replication")]
        assert ours == theirs
        assert [(action, len(images)) for action, images in (ours[0], ours[-1])] == [
            ("insert", len(changes)),
            ("delete", len(changes)),
        ]

    await asyncio.to_thread(agree)
