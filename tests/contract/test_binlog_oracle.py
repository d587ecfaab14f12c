"""The decoder and mysql-replication, written by others, see the same rows in the same log."""

import random
import secrets
from itertools import islice

import pytest
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

from databus_binlog import Position, Rows, connect
from devstack import Server
from support import connected

ACTIONS = {WriteRowsEvent: "insert", UpdateRowsEvent: "update", DeleteRowsEvent: "delete"}

# the other library still calls its driver with the old names of arguments
pytestmark = pytest.mark.filterwarnings("ignore:'(passwd|db)' is deprecated:DeprecationWarning")


def oracle_rows(server: Server, schema: str, start: Position, count: int) -> list[tuple[str, list[object]]]:
    """Return action and values of the first `count` row images: that library reads on after the log's end."""
    reader = BinLogStreamReader(
        connection_settings={
            "host": server.host,
            "port": server.port,
            "user": server.user,
            "password": server.password,
        },
        server_id=4721,
        auto_position=start.gtid_set,
        only_schemas=[schema],
        only_events=list(ACTIONS),
        is_mariadb=True,
    )
    images = (
        (ACTIONS[type(event)], list(values.values()))
        for event in reader
        for row in event.rows
        for values in ([row["values"]] if "values" in row else [row["before_values"], row["after_values"]])
    )
    try:
        return list(islice(images, count))
    finally:
        reader.close()


async def test_both_see_the_same_rows(mariadb: Server):
    rng = random.Random(3)
    schema = f"t_{secrets.token_hex(4)}"
    login = {"host": mariadb.host, "port": mariadb.port, "user": mariadb.user, "password": mariadb.password}
    async with connected(mariadb) as execute, connect(**login) as session:
        start = await session.current_position()
        await execute(f"CREATE DATABASE {schema} CHARACTER SET utf8mb4")
        try:
            await execute(
                f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, b BIGINT UNSIGNED, d DECIMAL(12,3), v VARCHAR(50),"
                " x DOUBLE, t DATETIME(6))"
            )
            for number in range(200):
                text = "".join(rng.choice("abcé日😀 '") for _ in range(rng.randrange(20)))
                await execute(
                    f"INSERT INTO {schema}.t VALUES (%s, %s, %s, %s, %s, %s)",
                    *(number, rng.getrandbits(64), f"{rng.randrange(-(10**9), 10**9)}.{rng.randrange(1000):03}"),
                    *(
                        rng.choice([None, text]),
                        rng.random(),
                        f"2024-05-{rng.randrange(1, 29)} 01:02:03.{rng.randrange(10**6)}",
                    ),
                )
            await execute(f"UPDATE {schema}.t SET v = NULL, b = b DIV 2 WHERE id % 3 = 0")
            await execute(f"DELETE FROM {schema}.t WHERE id % 2 = 0")
            stream = await session.dump(start, server_id=4722, follow=False, wanted=lambda name, _: name == schema)
            ours = [
                (event.action, image)
                async for events in stream
                for event in events
                if isinstance(event, Rows)
                for image in event.images()
            ]
            theirs = oracle_rows(mariadb, schema, start, len(ours))
        finally:
            await execute(f"DROP DATABASE {schema}")
    assert len(ours) == 200 + 2 * 67 + 100
    assert ours == [(action, [text_of(value) for value in values]) for action, values in theirs]


def text_of(value: object) -> bytes | None:
    if value is None:
        return None
    if hasattr(value, "microsecond"):
        return value.strftime("%Y-%m-%d %H:%M:%S.%f").encode()
    return (repr(value) if isinstance(value, float) else str(value)).encode()
