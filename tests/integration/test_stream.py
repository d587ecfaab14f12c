"""From the database to Kafka: reader and publisher as processes, on MariaDB and MySQL."""

import asyncio
import json

import pytest
from aiokafka import AIOKafkaConsumer
from asyncmy.errors import IntegrityError

from common.connections import Execute, connected, session_on
from common.pipelines import Changes, Consume, MakePipeline
from devstack import Server
from devstack.pipeline import Pipeline


@pytest.fixture
def pipeline(make_pipeline: MakePipeline, source: Server, schema: str) -> Pipeline:
    """A pipeline that stops at a doubt, so that none is healed unnoticed."""
    return make_pipeline(source, schema, doubt={"on_doubt": "stop"})


def start(pipeline: Pipeline) -> None:
    pipeline.spawn("publisher")
    pipeline.spawn("reader")
    pipeline.wait("reader")


async def test_rows_of_every_action_arrive_with_their_table(
    pipeline: Pipeline, schema: str, execute: Execute, changes: Consume
) -> None:
    await execute("CREATE TABLE t (id INT UNSIGNED PRIMARY KEY, name VARCHAR(20), price DECIMAL(10,2), at DATETIME(3))")
    start(pipeline)
    await execute("INSERT INTO t VALUES (4294967295, 'Anne', 19.90, '2021-02-03 04:05:06.007'), (2, NULL, -0.5, NULL)")
    await execute("UPDATE t SET name = 'Zoë 🦊' WHERE id = 2")
    await execute("DELETE FROM t WHERE id = 2")
    await execute("ALTER TABLE t ADD COLUMN c TINYINT NOT NULL DEFAULT 7 FIRST")
    await execute("INSERT INTO t VALUES (1, 3, 'new', NULL, NULL)")
    await execute("DROP TABLE t")
    found = await (await changes(f"{pipeline.name}.{schema}.t")).until(6)
    assert [message["Action"] for message in found] == ["insert", "update", "delete", "alter", "insert", "drop"]
    inserted, updated, deleted, altered, after, dropped = found
    assert inserted["Rows"] == [
        [b"4294967295", b"Anne", b"19.90", b"2021-02-03 04:05:06.007"],
        [b"2", None, b"-0.50", None],
    ]
    assert updated["Rows"] == [[b"2", None, b"-0.50", None], [b"2", "Zoë 🦊".encode(), b"-0.50", None]]
    assert deleted["Rows"] == [updated["Rows"][1]]
    assert after["Rows"] == [[b"1", b"3", b"new", None, None]]
    assert [column["Name"] for column in inserted["Table"]["Columns"]] == ["id", "name", "price", "at"]
    assert [column["Name"] for column in after["Table"]["Columns"]] == ["c", "id", "name", "price", "at"]
    assert (inserted["Table"]["PKColumns"], after["Table"]["PKColumns"]) == ([0], [1])
    assert altered["Query"] == f"ALTER TABLE `{schema}`.t ADD COLUMN c TINYINT NOT NULL DEFAULT 7 FIRST"
    assert dropped["Key"]["Action"] == "DDL"
    positions = [message["Key"]["Pos"]["Pos"] for message in found]
    assert positions == sorted(positions)


async def test_a_message_describes_its_table_as_the_server_does(
    pipeline: Pipeline, source: Server, schema: str, execute: Execute, changes: Consume
) -> None:
    await execute(
        "CREATE TABLE t (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, e ENUM('a','b,''c') NOT NULL,"
        " c CHAR(3) CHARACTER SET latin1, v VARCHAR(20), d DECIMAL(7,3), j JSON, ts TIMESTAMP(2) NULL,"
        " b BIT(3), bin BINARY(4), KEY by_v (v, d))"
    )
    start(pipeline)
    await execute("INSERT INTO t (e, v) VALUES (2, 'x')")
    (message,) = await (await changes(f"{pipeline.name}.{schema}.t")).until(1)
    async with session_on(source) as s:
        listed = {name: raw for name, raw, *_ in await s.query(f"SHOW COLUMNS FROM {schema}.t")}
    columns = message["Table"]["Columns"]
    assert {column["Name"]: column["RawType"] for column in columns} == listed
    assert [column["IsAuto"] for column in columns] == [True] + [False] * 8
    assert columns[1]["EnumValues"] == ["a", "b,'c"]
    assert [(index["Name"], index["Columns"]) for index in message["Table"]["Indexes"]] == [
        ("PRIMARY", ["id"]),
        ("by_v", ["v", "d"]),
    ]


async def test_xa_transactions_are_published_when_committed_in_one_phase(
    pipeline: Pipeline, schema: str, execute: Execute, changes: Consume
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    start(pipeline)
    for statement in ("XA START 'x'", "INSERT INTO t VALUES (1)", "XA END 'x'", "XA COMMIT 'x' ONE PHASE"):
        await execute(statement)
    await execute("INSERT INTO t VALUES (2)")
    found = await (await changes(f"{pipeline.name}.{schema}.t")).until(2)
    assert [message["Rows"] for message in found] == [[[b"1"]], [[b"2"]]]


async def test_a_pipeline_resumes_where_it_was_stopped(
    pipeline: Pipeline, schema: str, execute: Execute, changes: Consume
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    start(pipeline)
    consumer = await changes(f"{pipeline.name}.{schema}.t")
    await execute("INSERT INTO t VALUES (1)")
    assert (await consumer.until(1))[0]["Rows"] == [[b"1"]]
    for service in ("reader", "publisher"):
        await asyncio.to_thread(pipeline.stop, service)
    await execute("INSERT INTO t VALUES (2)")
    await execute("ALTER TABLE t ADD COLUMN name VARCHAR(9)")
    await execute("INSERT INTO t VALUES (3, 'c')")
    start(pipeline)
    old_row, _, new_row = await consumer.until(3)
    assert old_row["Rows"] == [[b"2"]]
    assert new_row["Rows"] == [[b"3", b"c"]]


@pytest.mark.mysql_in_slow
async def test_rows_arrive_exactly_once_though_both_services_are_killed(
    pipeline: Pipeline, source: Server, schema: str, execute: Execute, changes: Consume
) -> None:
    """Each row has the next number. Each transaction has two rows, except the last, which has one."""
    await execute("CREATE TABLE ledger (n INT PRIMARY KEY, text VARCHAR(100))")
    start(pipeline)
    disturbed = asyncio.Event()

    async def write() -> int:
        n = 0
        async with connected(source) as run:
            await run(f"USE {schema}")
            while not disturbed.is_set():
                await run("BEGIN")
                await run("INSERT INTO ledger VALUES (%s, REPEAT('x', 100))", n)
                await run("INSERT INTO ledger VALUES (%s, NULL)", n + 1)
                await run("COMMIT")
                n += 2
            await run("INSERT INTO ledger VALUES (%s, 'last')", n)
        return n + 1

    async def disturb(consumer: Changes) -> None:
        for victim in ("reader", "publisher", "publisher", "reader"):
            await consumer.until(1)
            await asyncio.to_thread(pipeline.kill, victim)
            pipeline.spawn(victim)
        disturbed.set()

    topic = f"{pipeline.name}.{schema}.ledger"
    async with asyncio.TaskGroup() as tasks:
        writing = tasks.create_task(write())
        tasks.create_task(disturb(await changes(topic)))
    messages = await (await changes(topic)).until(writing.result())
    assert [int(row[0]) for message in messages for row in message["Rows"]] == list(range(writing.result()))


async def test_t9_ddl_and_rows_of_other_tables_are_ignored(
    pipeline: Pipeline, schema: str, execute: Execute, changes: Consume
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    start(pipeline)
    await execute(f"CREATE DATABASE {schema}_other")
    await execute(f"CREATE TABLE {schema}_other.t (id INT PRIMARY KEY)")
    await execute(f"INSERT INTO {schema}_other.t VALUES (1)")
    await execute("SET NAMES binary")
    await execute(f"CREATE TABLE {schema}_other.raw (id INT) COMMENT 'größe'")
    await execute(f"DROP DATABASE {schema}_other")
    await execute("INSERT INTO t VALUES (2)")
    (message,) = await (await changes(f"{pipeline.name}.{schema}.t")).until(1)
    assert message["Rows"] == [[b"2"]]


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_an_alter_in_two_phases_is_published_once_and_a_failed_one_never(
    pipeline: Pipeline, schema: str, execute: Execute, changes: Consume
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY, a INT)")
    start(pipeline)
    await execute("SET SESSION binlog_alter_two_phase = ON")
    await execute("INSERT INTO t VALUES (1, 7), (2, 7)")
    await execute("ALTER TABLE t ADD COLUMN b INT")
    with pytest.raises(IntegrityError, match="Duplicate entry"):
        await execute("ALTER TABLE t ADD UNIQUE (a)")
    await execute("INSERT INTO t VALUES (3, 7, 7)")
    messages = await (await changes(f"{pipeline.name}.{schema}.t")).until(3)
    assert [message["Action"] for message in messages] == ["insert", "alter", "insert"]


async def test_ddl_is_published_with_the_tables_columns_before_and_after_it(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, kafka: Server
) -> None:
    options = {"output_ddl": True}
    pipeline = make_pipeline(source, schema, publisher={"format": "maxwell-json", "options": options})
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    start(pipeline)
    await execute("ALTER TABLE t ADD COLUMN a INT")
    await execute("ALTER TABLE t DROP COLUMN a")
    async with (
        AIOKafkaConsumer(
            f"{pipeline.name}.{schema}.t",
            bootstrap_servers=kafka.url,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
        ) as consumer,
        asyncio.timeout(60),
    ):
        added, dropped = [json.loads((await consumer.getone()).value) for _ in range(2)]
    names = [[[c["name"] for c in change[of]["columns"]] for of in ("old", "def")] for change in (added, dropped)]
    assert names == [[["id"], ["id", "a"]], [["id", "a"], ["id"]]]


@pytest.mark.parametrize(
    "statement", ["INSERT INTO t VALUES (1)", "REPLACE INTO t VALUES (1)", "CREATE TABLE u AS SELECT * FROM t"]
)
async def test_a_statement_that_hides_its_rows_stops_the_reader(
    pipeline: Pipeline, schema: str, execute: Execute, statement: str
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    start(pipeline)
    await execute("SET SESSION binlog_format = 'STATEMENT'")
    await execute(statement)
    await asyncio.to_thread(pipeline.wait_ended, "reader", 30)
    log = pipeline.log("reader").read_text()
    assert "without logging the rows" in log
    assert schema in log
    assert "Traceback" not in log
    for field in ("pipeline", "generation", "host", "position"):
        assert f" {field}=" in log.splitlines()[-1]


async def test_a_temporary_table_with_the_name_of_a_captured_one_is_ignored(
    pipeline: Pipeline, source: Server, schema: str, execute: Execute, changes: Consume
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    start(pipeline)
    async with connected(source) as run:
        await run(f"USE {schema}")
        await run("SET SESSION binlog_format = 'MIXED'")
        await run("CREATE TEMPORARY TABLE t (id INT)")
        await run("INSERT INTO t VALUES (1)")
        await run("UPDATE t SET id = 2")
        await run("TRUNCATE TABLE t")
        await run("DROP TEMPORARY TABLE t")
        await run("CREATE TEMPORARY TABLE t (id INT)")
        await run("REPLACE INTO t VALUES (3)")
        await run("SELECT GET_LOCK(%s, 0)", schema)
    # A session that ends drops its temporary tables before it releases its locks.
    await execute("SELECT GET_LOCK(%s, 30)", schema)
    await execute("INSERT INTO t VALUES (4)")
    (message,) = await (await changes(f"{pipeline.name}.{schema}.t")).until(1)
    assert message["Rows"] == [[b"4"]]


async def test_a_table_made_from_a_query_arrives_with_its_rows(
    pipeline: Pipeline, schema: str, execute: Execute, changes: Consume
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    await execute("INSERT INTO t VALUES (1)")
    start(pipeline)
    await execute("CREATE TABLE u AS SELECT * FROM t")
    created, filled = await (await changes(f"{pipeline.name}.{schema}.u")).until(2)
    assert (created["Action"], filled["Action"], filled["Rows"]) == ("create", "insert", [[b"1"]])


async def test_dropping_a_schema_drops_its_tables(
    pipeline: Pipeline, schema: str, execute: Execute, changes: Consume
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    start(pipeline)
    await execute("INSERT INTO t VALUES (1)")
    await execute("CREATE TABLE u (id INT PRIMARY KEY)")
    await execute(f"DROP DATABASE {schema}")
    await execute(f"CREATE DATABASE {schema}")
    found = await (await changes(f"{pipeline.name}.{schema}.t", f"{pipeline.name}.{schema}.u")).until(4)
    actions = {name: [m["Action"] for m in found if m["Table"]["Name"] == name] for name in ("t", "u")}
    assert actions == {"t": ["insert", "drop"], "u": ["create", "drop"]}
