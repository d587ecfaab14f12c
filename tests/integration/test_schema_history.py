"""Rows get the column names of their time, from the binlog or from the schema history."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient

from common.connections import Execute, connected
from common.pipelines import Consume, MakePipeline, run_until_idle
from databus_cli.__main__ import main
from databus_core import names
from devstack import Server, Stack
from devstack.pipeline import Pipeline, Service

#: values of binlog_row_metadata with which servers log the least about columns
LEAST = {"mariadb": "NO_LOG", "mysql": "MINIMAL"}


@pytest.fixture(params=["mariadb", "mysql"])
def source(request: pytest.FixtureRequest, own: Stack) -> Server:
    return own.start(request.param)


@pytest.fixture(params=["FULL", "least"], autouse=True)
async def metadata(request: pytest.FixtureRequest, source: Server) -> AsyncIterator[str]:
    level = LEAST[source.kind] if request.param == "least" else request.param
    await log_columns(source, level)
    yield level
    await log_columns(source, "FULL")


async def log_columns(source: Server, level: str) -> None:
    async with connected(source) as run:
        await run(f"SET GLOBAL binlog_row_metadata = '{level}'")


@pytest.fixture
def pipeline(make_pipeline: MakePipeline, source: Server, schema: str) -> Pipeline:
    """A pipeline that stops at a doubt, so that none is healed unnoticed."""
    return make_pipeline(source, schema, doubt={"on_doubt": "stop"})


def start(pipeline: Pipeline) -> None:
    pipeline.spawn("publisher")
    pipeline.spawn("reader")
    pipeline.wait("reader")


async def stop(pipeline: Pipeline) -> None:
    for service in ("reader", "publisher"):
        await asyncio.to_thread(pipeline.stop, service)


def rows(messages: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Return the inserted rows, each as column name → text, without NULLs and empty texts."""
    return [
        {column["Name"]: cell.decode() for column, cell in zip(message["Table"]["Columns"], row, strict=True) if cell}
        for message in messages
        if message["Action"] == "insert"
        for row in message["Rows"]
    ]


async def test_rows_with_every_kind_of_column_are_published_exactly(
    pipeline: Pipeline, schema: str, execute: Execute, changes: Consume
) -> None:
    """One table is created before the pipeline starts, the other afterwards."""
    columns = (
        "id INT UNSIGNED PRIMARY KEY, n BIGINT UNSIGNED, t TINYINT, d DECIMAL(9,3), e ENUM('a','é') NOT NULL,"
        " s SET('x','y') CHARACTER SET latin1, c CHAR(70), l VARCHAR(9) CHARACTER SET latin1, b BINARY(3), x TEXT,"
        " j JSON, at DATETIME(3), ts TIMESTAMP(2) NULL, y YEAR, bits BIT(9), f FLOAT, p POINT, v VARBINARY(300)"
    )
    values = (
        "4294967295, 18446744073709551615, -1, -1.5, 'é', 'x,y', 'Zoë', 'größe', x'0100', 'text', '[1]',"
        " '2021-02-03 04:05:06.007', NULL, 2024, 257, 0.5, NULL, 'v'"
    )
    await execute(f"CREATE TABLE before_it ({columns})")
    start(pipeline)
    await execute(f"CREATE TABLE after_it ({columns})")
    for table in ("before_it", "after_it"):
        await execute(f"INSERT INTO {table} VALUES ({values})")
    found = await (await changes(*(f"{pipeline.name}.{schema}.{t}" for t in ("before_it", "after_it")))).until(3)
    expected = {
        "id": "4294967295", "n": "18446744073709551615", "t": "-1", "d": "-1.500", "e": "2", "s": "3", "c": "Zoë",
        "l": "größe", "b": "\x01\0\0", "x": "text", "j": "[1]", "at": "2021-02-03 04:05:06.007", "y": "2024",
        "bits": "257", "f": "0.5", "v": "v",
    }  # fmt: skip
    assert rows(found) == [expected, expected]
    assert [message["Table"]["PKColumns"] for message in found] == [[0]] * 3
    assert [message["Table"]["Columns"][4]["EnumValues"] for message in found] == [["a", "é"]] * 3


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
@pytest.mark.parametrize("metadata", ["least"], indirect=True)
async def test_columns_that_only_mariadb_has_are_read_with_the_history(
    pipeline: Pipeline, source: Server, schema: str, execute: Execute, changes: Consume
) -> None:
    """One is a hidden hash; some have temporal types from before MariaDB 10.1, whose precision is not logged."""
    start(pipeline)
    async with connected(source) as run:
        await run("SET GLOBAL mysql56_temporal_format = OFF")
    await execute("CREATE TABLE t (a DATETIME(3), b TIME(6), c TIMESTAMP(1) NULL, x TEXT, id INT UNSIGNED, UNIQUE (x))")
    async with connected(source) as run:
        await run("SET GLOBAL mysql56_temporal_format = ON")
    await execute(
        "CREATE TABLE u (v VARCHAR(90) COMPRESSED, w VARCHAR(90) COMPRESSED CHARSET latin1, x TEXT COMPRESSED, y UUID)"
    )
    await execute("INSERT INTO t VALUES ('2021-02-03 04:05:06.007', '01:02:03.4', NULL, 'é', 4294967295)")
    await execute("INSERT INTO u VALUES (REPEAT('é', 90), REPEAT('é', 90), 'é', NULL)")
    found = await (await changes(*(f"{pipeline.name}.{schema}.{table}" for table in "tu"))).until(4)
    old, compressed = sorted(rows(found), key=len, reverse=True)
    assert old == {"a": "2021-02-03 04:05:06.007", "b": "01:02:03.400000", "x": "é", "id": "4294967295"}
    assert compressed == {"v": "é" * 90, "w": "é" * 90, "x": "é"}


async def test_a_table_whose_create_statement_is_not_understood_is_read_from_the_server(
    pipeline: Pipeline, schema: str, execute: Execute, changes: Consume
) -> None:
    start(pipeline)
    await execute("CREATE TABLE t (id INT UNSIGNED PRIMARY KEY, e ENUM(0x61, 'b'))")
    await execute("INSERT INTO t VALUES (4294967295, 'b')")
    found = await (await changes(f"{pipeline.name}.{schema}.t")).until(2)
    assert rows(found) == [{"id": "4294967295", "e": "2"}]
    assert found[1]["Table"]["Columns"][1]["EnumValues"] == ["a", "b"]


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
@pytest.mark.parametrize("metadata", ["least"], indirect=True)
async def test_rows_that_do_not_fit_the_history_stop_the_reader(
    pipeline: Pipeline, schema: str, execute: Execute
) -> None:
    """A system-versioned table has columns that information_schema does not list."""
    start(pipeline)
    await execute("CREATE TABLE t (id INT PRIMARY KEY) WITH SYSTEM VERSIONING")
    await execute("INSERT INTO t VALUES (1)")
    await asyncio.to_thread(pipeline.wait_ended, "reader", 60)
    assert f"rows of {schema}.t do not fit what is known of the table" in pipeline.log("reader").read_text()


async def test_t8_rows_keep_the_columns_of_their_time_if_ddl_ran_while_the_reader_was_down(
    pipeline: Pipeline, schema: str, execute: Execute, changes: Consume
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)")
    await run_until_idle(pipeline)
    await execute("INSERT INTO t VALUES (2, 2, 3)")
    await execute("ALTER TABLE t CHANGE a b INT, CHANGE b a INT")
    await execute("INSERT INTO t VALUES (3, 2, 3)")
    await execute("ALTER TABLE t ADD c VARCHAR(9) FIRST, DROP b")
    await execute("INSERT INTO t VALUES ('x', 4, 3)")
    await run_until_idle(pipeline)
    await execute("INSERT INTO t VALUES ('y', 5, 3)")
    await run_until_idle(pipeline)
    consumer = await changes(f"{pipeline.name}.{schema}.t")
    assert rows(await consumer.until(6)) == [
        {"id": "2", "a": "2", "b": "3"},
        {"id": "3", "b": "2", "a": "3"},
        {"c": "x", "id": "4", "a": "3"},
        {"c": "y", "id": "5", "a": "3"},
    ]


async def test_t9_ddl_on_tables_that_are_not_captured_has_no_effect(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, changes: Consume
) -> None:
    pipeline = make_pipeline(source, schema, tables="t")
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    start(pipeline)
    await execute("CREATE TABLE u (id INT PRIMARY KEY, a INT)")
    await execute("ALTER TABLE u DROP a")
    await execute(f"CREATE DATABASE {schema}_other")
    await execute(f"CREATE TABLE {schema}_other.t (b TEXT)")
    await execute(f"DROP DATABASE {schema}_other")
    await execute("INSERT INTO u VALUES (1)")
    await execute("INSERT INTO t VALUES (2)")
    (message,) = await (await changes(f"{pipeline.name}.{schema}.t")).until(1)
    assert rows([message]) == [{"id": "2"}]


async def test_t10_rows_have_the_new_columns_after_a_swap_with_a_table_that_is_not_captured(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, changes: Consume
) -> None:
    """gh-ost and pt-online-schema-change change tables in this way. The table is loaded, for its rows are new."""
    pipeline = make_pipeline(source, schema, tables="t")
    await execute("CREATE TABLE t (id INT PRIMARY KEY, a INT)")
    start(pipeline)
    await execute("CREATE TABLE _t_gho LIKE t")
    await execute("ALTER TABLE _t_gho ADD b INT FIRST, RENAME COLUMN a TO c")
    await execute("INSERT INTO t VALUES (1, 2)")
    await execute("INSERT INTO _t_gho VALUES (9, 1, 2)")
    await execute("RENAME TABLE t TO _t_del, _t_gho TO t")
    await execute("INSERT INTO t VALUES (9, 2, 2)")
    await execute("DROP TABLE _t_del")
    consumer = await changes(f"{pipeline.name}.{schema}.t")
    found = await consumer.until(3)
    while len(rows(found)) < 3:
        found += await consumer.until(1)
    before, *after = rows(found)
    assert before == {"id": "1", "a": "2"}
    assert after == [{"b": "9", "id": "1", "c": "2"}, {"b": "9", "id": "2", "c": "2"}]


async def test_t10_rows_keep_the_columns_of_their_time_if_tables_swap_names_or_are_created_again(
    pipeline: Pipeline, schema: str, execute: Execute, changes: Consume
) -> None:
    await execute("CREATE TABLE a (id INT PRIMARY KEY, of_a INT)")
    await execute("CREATE TABLE c (of_c INT, id INT PRIMARY KEY)")
    start(pipeline)
    await execute("INSERT INTO a VALUES (1, 7)")
    await execute("RENAME TABLE a TO b, c TO a")
    await execute("INSERT INTO a VALUES (7, 2)")
    await execute("DROP TABLE a")
    await execute("CREATE TABLE a (id INT PRIMARY KEY, again INT)")
    await execute("INSERT INTO a VALUES (3, 7)")
    found = await (await changes(f"{pipeline.name}.{schema}.a")).until(6)
    assert rows(found) == [{"id": "1", "of_a": "7"}, {"of_c": "7", "id": "2"}, {"id": "3", "again": "7"}]


async def test_t11_rows_keep_the_columns_of_their_time_if_ddl_adds_moves_and_drops_columns(
    pipeline: Pipeline, schema: str, execute: Execute, changes: Consume
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY, a INT)")
    start(pipeline)
    await execute("ALTER TABLE t ADD b INT FIRST, ALGORITHM=INSTANT")
    await execute("INSERT INTO t VALUES (1, 2, 3)")
    await execute("ALTER TABLE t ADD c INT AFTER id, ADD d INT AFTER c")
    await execute("INSERT INTO t VALUES (1, 3, 4, 5, 6)")
    await execute("ALTER TABLE t MODIFY a INT FIRST, DROP c, ALGORITHM=COPY")
    await execute("INSERT INTO t VALUES (6, 1, 4, 5)")
    found = await (await changes(f"{pipeline.name}.{schema}.t")).until(6)
    assert rows(found) == [
        {"b": "1", "id": "2", "a": "3"},
        {"b": "1", "id": "3", "c": "4", "d": "5", "a": "6"},
        {"a": "6", "b": "1", "id": "4", "d": "5"},
    ]


@pytest.fixture
async def later(pipeline: Pipeline, schema: str, execute: Execute) -> str:
    """A schema that is included only after the pipeline's first start."""
    name = f"{schema}_later"
    await execute(f"CREATE DATABASE {name}")
    await execute(f"CREATE TABLE {name}.t (a INT, b INT UNSIGNED)")
    await run_until_idle(pipeline)
    config = json.loads(pipeline.config.read_text())
    config["source"]["include"].append(f"{name}.*")
    pipeline.config.write_text(json.dumps(config))
    return name


@pytest.mark.parametrize("metadata", ["least"], indirect=True)
async def test_tables_of_a_schema_that_is_included_later_are_read_from_the_server(
    pipeline: Pipeline, source: Server, later: str, execute: Execute, changes: Consume
) -> None:
    await execute(f"INSERT INTO {later}.t VALUES (1, 4294967295)")
    await execute(f"CREATE TABLE {later}.created (id INT)")
    await execute(f"INSERT INTO {later}.created VALUES (2)")
    await log_columns(source, "FULL")  # does not name the columns of rows that are logged already
    await run_until_idle(pipeline)
    for table, messages, row in (("t", 1, {"a": "1", "b": "4294967295"}), ("created", 2, {"id": "2"})):
        assert rows(await (await changes(f"{pipeline.name}.{later}.{table}")).until(messages)) == [row]


@pytest.mark.parametrize("metadata", ["least"], indirect=True)
async def test_the_reader_continues_once_its_account_may_see_the_table(
    pipeline: Pipeline, schema: str, execute: Execute, changes: Consume
) -> None:
    account = f"u_{secrets.token_hex(4)}"
    await execute(f"CREATE USER {account} IDENTIFIED BY 'reader'")
    await execute(f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {account}")
    config = json.loads(pipeline.config.read_text())
    config["source"] |= {"user": account, "password": "reader", "password_file": None}
    pipeline.config.write_text(json.dumps(config))
    await execute("CREATE TABLE t (id INT PRIMARY KEY, n INT UNSIGNED)")
    await run_until_idle(pipeline)
    await execute("INSERT INTO t VALUES (1, 4294967295)")
    start(pipeline)
    await asyncio.to_thread(pipeline.wait_ended, "reader", 60)
    *_, last = pipeline.log("reader").read_text().splitlines()
    assert "if information_schema does not show it to the account, grant SELECT on it" in last
    await execute(f"GRANT SELECT ON {schema}.* TO {account}")
    pipeline.spawn("reader")
    assert rows(await (await changes(f"{pipeline.name}.{schema}.t")).until(1)) == [{"id": "1", "n": "4294967295"}]


@pytest.mark.parametrize("metadata", ["least"], indirect=True)
async def test_the_character_set_of_a_schema_that_is_included_later_is_not_taken_from_after_its_change(
    pipeline: Pipeline, later: str, source: Server, changes: Consume
) -> None:
    async with connected(source) as run:
        await run(f"USE {later}")
        await run("CREATE TABLE u (name CHAR(3))")
        await run("INSERT INTO t VALUES (1, 2)")
        await run("INSERT INTO u VALUES ('€')")
        await run("ALTER DATABASE CHARACTER SET latin1")
    await run_until_idle(pipeline)
    [message] = rows(await (await changes(f"{pipeline.name}.{later}.u")).until(2))
    assert message == {"name": "€"}


@pytest.mark.parametrize("metadata", ["least"], indirect=True)
async def test_a_table_that_was_altered_before_it_could_be_read_stops_the_reader(
    pipeline: Pipeline, later: str, execute: Execute
) -> None:
    await execute(f"INSERT INTO {later}.t VALUES (1, 2)")
    await execute(f"ALTER TABLE {later}.t CHANGE a b INT, CHANGE b a INT UNSIGNED")
    start(pipeline)
    await asyncio.to_thread(pipeline.wait_ended, "reader", 60)
    *_, last = pipeline.log("reader").read_text().splitlines()
    assert f"rows of {later}.t at " in last
    assert "if it was altered since, set binlog_row_metadata=FULL" in last


@pytest.mark.parametrize("metadata", ["FULL"], indirect=True)
async def test_t7_names_that_are_no_longer_logged_come_from_the_history(
    pipeline: Pipeline, source: Server, schema: str, execute: Execute, changes: Consume
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY, a INT UNSIGNED)")
    start(pipeline)
    await execute("INSERT INTO t VALUES (1, 4294967295)")
    await execute("ALTER TABLE t RENAME COLUMN a TO b")
    await log_columns(source, LEAST[source.kind])
    await execute("INSERT INTO t VALUES (2, 4294967295)")
    await execute("ALTER TABLE t RENAME COLUMN b TO c")
    await execute("INSERT INTO t VALUES (3, 4294967295)")
    found = await (await changes(f"{pipeline.name}.{schema}.t")).until(5)
    full = "4294967295"
    assert rows(found) == [{"id": "1", "a": full}, {"id": "2", "b": full}, {"id": "3", "c": full}]


@pytest.mark.parametrize("metadata", ["least"], indirect=True)
@pytest.mark.parametrize("fault", ["missing", "corrupt"])
async def test_t30_an_unreadable_history_is_never_treated_as_empty(
    pipeline: Pipeline, schema: str, execute: Execute, changes: Consume, kafka: Server, fault: str
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    start(pipeline)
    consumer = await changes(f"{pipeline.name}.{schema}.t")
    await execute("INSERT INTO t VALUES (1)")
    await consumer.until(1)
    await stop(pipeline)
    topic = names.schema_topic(pipeline.name)
    if fault == "missing":
        admin = AIOKafkaAdminClient(bootstrap_servers=kafka.url)
        await admin.start()
        await admin.delete_topics([topic])
        await admin.close()
    else:
        async with AIOKafkaProducer(bootstrap_servers=kafka.url) as producer:
            await producer.send_and_wait(topic, b'{"schema"', names.schema_key(schema, "t"))
    pipeline.spawn("publisher")
    pipeline.spawn("reader")
    ended: Service = "reader" if fault == "missing" else "publisher"
    await asyncio.to_thread(pipeline.wait_ended, ended, 60)
    assert "the schema history in Kafka" in pipeline.log(ended).read_text()


@pytest.mark.mysql_in_slow
async def test_a_reset_reads_the_tables_again_unless_they_were_altered_since_its_position(
    pipeline: Pipeline, schema: str, execute: Execute, changes: Consume, metadata: str
) -> None:
    consumer = await changes(f"{pipeline.name}.{schema}.t")
    reset = ["pipeline", "reset", "--to", "latest", "--yes", "--config", str(pipeline.config)]
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    await run_until_idle(pipeline)
    await execute("INSERT INTO t VALUES (1)")
    assert await asyncio.to_thread(main, reset) == 0
    await execute("INSERT INTO t VALUES (2)")
    await run_until_idle(pipeline)
    assert rows(await consumer.until(1)) == [{"id": "2"}]
    assert await asyncio.to_thread(main, reset) == 0
    await execute("ALTER TABLE t ADD COLUMN v INT")
    await execute("INSERT INTO t VALUES (3, 4)")
    if metadata == "FULL":
        await run_until_idle(pipeline)
        assert rows(await consumer.until(2)) == [{"id": "3", "v": "4"}]
        return
    pipeline.spawn("publisher")
    pipeline.spawn("reader")
    await asyncio.to_thread(pipeline.wait_ended, "reader", 90)
    last = pipeline.log("reader").read_text().splitlines()[-1]
    assert "tables were altered since the position at which the pipeline begins" in last
    assert "run `databus pipeline reset --to snapshot`" in last
