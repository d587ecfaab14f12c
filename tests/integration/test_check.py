"""`databus check`: one table of what is right and wrong, and what to do; one fault hides no other."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from common.connections import Execute, connected, session_on
from common.pipelines import MakePipeline
from common.waiting import eventually
from databus_binlog import Position
from databus_changes.snapshot.xa_commits import executes_xa
from databus_cli.__main__ import main
from databus_core.kafka_progress import read_progress
from databus_core.log_events import LogEvent
from databus_core.names import progress_topic
from databus_core.progress import Progress, encode_progress
from databus_core.settings import load
from devstack import Server
from devstack.pipeline import Pipeline
from integration.dump_api import produce

#: (where, what) → (verdict, text)
Found = dict[tuple[str, str], tuple[str, str]]
Run = Callable[..., Awaitable[tuple[int, Found]]]


@pytest.fixture
async def pipeline(make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute) -> Pipeline:
    """A pipeline that captures the test's schema, which has the table `t`."""
    await execute("CREATE TABLE t (a INT PRIMARY KEY)")
    return make_pipeline(source, schema)


@pytest.fixture
def run(pipeline: Pipeline, capfdbinary: pytest.CaptureFixture[bytes]) -> Run:
    async def run(*options: str) -> tuple[int, Found]:
        code = await asyncio.to_thread(main, ["check", "--json", "--config", str(pipeline.config), *options])
        out, err = capfdbinary.readouterr()
        assert err == b""
        lines = [json.loads(line) for line in out.splitlines()]
        return code, {(each["where"].split()[0], each["what"]): (each["verdict"], each["text"]) for each in lines}

    return run


def configure(pipeline: Pipeline, section: str, **values: Any) -> None:
    config = json.loads(pipeline.config.read_text())
    config[section] |= values
    pipeline.config.write_text(json.dumps(config))


def not_ok(found: Found) -> dict[str, str]:
    return {what: text for (_, what), (verdict, text) in found.items() if verdict != "ok"}


async def test_nothing_is_wrong_with_good_servers(run: Run) -> None:
    code, found = await run()
    assert (code, not_ok(found)) == (0, {})
    assert {where for where, _ in found} == {"database", "Kafka", "Redis", "publisher"}
    assert await run("--faults") == (0, {})


async def test_a_running_pipeline_is_checked_and_not_disturbed(run: Run, pipeline: Pipeline, execute: Execute) -> None:
    await asyncio.to_thread(pipeline.start_all, "publisher", "reader")
    await execute("INSERT INTO t VALUES (1)")
    await eventually(lambda: _is_published(pipeline))
    code, found = await run()
    assert (code, not_ok(found)) == (0, {})
    assert found["database", "position"] == ("ok", "the host has all changes after it")
    assert found["Kafka", "progress"] == ("ok", "1 is the last published transaction")
    assert found["Kafka", "schema history"] == ("ok", "known tables: 1")
    assert found["Redis", "lease of the reader"][1].startswith("held by ")
    events = [pipeline.log(service).read_text() for service in ("reader", "publisher")]
    assert not any(LogEvent.DEPENDENCY_LOST in text or text.count(LogEvent.GENERATION_LOST) for text in events)


async def _is_published(pipeline: Pipeline) -> bool:
    progress = await read_progress(load(pipeline.config))
    return progress is not None and progress.transaction == 1


@pytest.fixture
async def poor_server(source: Server) -> AsyncIterator[None]:
    """A server with wrong settings; they are restored afterwards."""
    settings = {
        "binlog_format": ("'MIXED'", "'ROW'"),
        "binlog_row_image": ("'MINIMAL'", "'FULL'"),
        "binlog_row_metadata": ("'MINIMAL'", "'FULL'"),
        "binlog_expire_logs_seconds": ("3600", {"mariadb": "0", "mysql": "2592000"}[source.kind]),
    }
    async with connected(source) as execute:
        for name, (poor, _) in settings.items():
            await execute(f"SET GLOBAL {name} = {poor}")
        yield
        for name, (_, good) in settings.items():
            await execute(f"SET GLOBAL {name} = {good}")


@pytest.mark.usefixtures("poor_server")
async def test_every_wrong_setting_is_named_although_kafka_and_redis_are_not_reachable(
    run: Run, pipeline: Pipeline
) -> None:
    configure(pipeline, "kafka", bootstrap_servers=["127.0.0.1:1"])
    configure(pipeline, "redis", url="redis://127.0.0.1:1/0")
    code, found = await run("--faults")
    assert code == 1
    assert {where_what: verdict for where_what, (verdict, _) in found.items()} == {
        ("database", "binlog_format"): "wrong",
        ("database", "binlog_row_image"): "wrong",
        ("database", "binlog_row_metadata"): "warning",
        ("database", "retention"): "warning",
        ("Kafka", "connection"): "wrong",
        ("Redis", "connection"): "wrong",
    }
    texts = not_ok(found)
    assert (
        texts["binlog_row_image"] == "binlog_row_image is MINIMAL: row images lack columns: set binlog_row_image=FULL"
    )
    assert "binlogs are deleted after 1:00:00" in texts["retention"]
    assert "redis.url" in texts["connection"]


@pytest.fixture
async def account(source: Server) -> AsyncIterator[str]:
    """An account without any privilege."""
    name = f"u_{secrets.token_hex(4)}"
    async with connected(source) as execute:
        await execute(f"CREATE USER {name}@'%' IDENTIFIED BY 'secret'")
        yield name
        await execute(f"DROP USER {name}@'%'")


async def test_missing_grants_are_named_by_table(
    run: Run, pipeline: Pipeline, source: Server, account: str, schema: str, execute: Execute
) -> None:
    await execute("CREATE TABLE u (a INT PRIMARY KEY)")
    configure(pipeline, "source", user=account, password_file=None, password="secret")
    _, found = await run("--faults")
    texts = not_ok(found)
    assert "GRANT REPLICATION CLIENT" in texts["REPLICATION CLIENT"]
    assert "GRANT REPLICATION SLAVE" in texts["REPLICATION SLAVE"]
    async with session_on(source) as session:  # MariaDB takes a lock if it commits XA transactions, as other tests do
        assert ("RELOAD" in texts) == (source.kind == "mysql" or await executes_xa(session))
    assert f"lacks SELECT on {schema}.*" in texts["SELECT"]
    await execute(f"GRANT REPLICATION SLAVE, REPLICATION CLIENT, RELOAD ON *.* TO {account}@'%'")
    await execute(f"GRANT SELECT ON {schema}.t TO {account}@'%'")
    await execute(f"GRANT INSERT ON {schema}.u TO {account}@'%'")
    code, found = await run("--faults")
    assert code == 1
    assert not_ok(found) == {"SELECT": f"user '{account}' lacks SELECT on {schema}.u: grant it"}
    await execute(f"GRANT SELECT ON {schema}.u TO {account}@'%'")
    assert await run("--faults") == (0, {})


async def test_the_id_of_another_replica_or_of_the_server_is_refused(
    run: Run, pipeline: Pipeline, source: Server
) -> None:
    mine = json.loads(pipeline.config.read_text())["reader"]["server_id"]
    async with session_on(source) as other:
        await other.register(mine)
        code, found = await run("--faults")
        assert code == 1
        assert f"server_id {mine} is in use" in not_ok(found)["server_id"]
        configure(pipeline, "reader", server_id=other.server.server_id)
        assert "reader.server_id" in not_ok((await run())[1])["server_id"]
    configure(pipeline, "reader", server_id=mine)
    assert await run("--faults") == (0, {})


async def test_tables_without_a_key_and_patterns_without_a_table_are_warnings(
    run: Run, pipeline: Pipeline, schema: str, source: Server, execute: Execute
) -> None:
    await execute("CREATE TABLE keyless (a INT NOT NULL, b INT UNIQUE)")
    await execute("CREATE TABLE c (a INT PRIMARY KEY, FOREIGN KEY (a) REFERENCES t (a) ON DELETE CASCADE)")
    configure(pipeline, "source", include=[f"{schema}.*", "shopp.*"])
    code, found = await run("--faults")
    assert code == 0
    texts = not_ok(found)
    assert f"{schema}.keyless: consumers" in texts["keys"]
    assert "shopp.* matches no table" in texts["source.include"]
    assert ("foreign keys" in texts) == (source.kind == "mariadb")


async def test_a_position_that_the_server_does_not_have_is_wrong(
    run: Run, pipeline: Pipeline, source: Server, kafka: Server
) -> None:
    async with session_on(source) as session:
        server = session.server
    future = f"{server.uuid}:1-999999999" if server.flavor == "mysql" else f"0-{server.server_id}-999999999"
    progress = Progress(Position(future), transaction=7, server=server.identity, time_us=1)
    await produce(kafka, progress_topic(pipeline.name), encode_progress(progress))
    code, found = await run()
    assert code == 1
    texts = not_ok(found)
    assert "which was published: its log was reset or has lost its end" in texts["position"]
    assert "must have 1 partition and cleanup.policy=compact" in texts["topics of the state"]
    assert found["Kafka", "progress"] == ("ok", "7 is the last published transaction")


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_limits_and_rights_of_kafka_are_named(run: Run, pipeline: Pipeline) -> None:
    configure(pipeline, "publisher", transaction_timeout="10h", replication_factor=3, oversize="stop")
    code, found = await run("--faults")
    assert code == 1
    texts = not_ok(found)
    assert texts.keys() == {"topics of the state", "rights on topics", "transactions", "size of records"}
    assert f"refused to create topic {progress_topic(pipeline.name)}" in texts["topics of the state"]
    verdict, text = found["Kafka", "rights on topics"]
    assert verdict == "warning"  # no table is known yet
    assert "refused to create topic" in text
    assert "transaction.max.timeout.ms" in texts["transactions"]
    assert "message.max.bytes is 1,048,588, and reader.row_limit is 8,388,608" in texts["size of records"]


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_formats_and_rules_that_do_not_fit_are_named(run: Run, pipeline: Pipeline, execute: Execute) -> None:
    await execute("CREATE TABLE a (a INT PRIMARY KEY, b INT, c INT)")
    routes = [{"match": ["*.a"], "rename": {"b": "C"}}, {"match": ["*.t"], "options": {"compatt": "strict"}}]
    configure(pipeline, "publisher", routes=routes)
    _, found = await run("--faults")
    texts = not_ok(found)
    assert "rename: two columns would have the same name" in texts["rules"]
    assert "options.compatt" in texts["formats"]


@pytest.fixture
async def full_redis(redis_server: Server) -> AsyncIterator[None]:
    """A Redis that evicts keys when it is full, which it soon is."""
    async with Redis.from_url(redis_server.url) as redis:
        await redis.config_set("maxmemory", "200mb")
        await redis.config_set("maxmemory-policy", "allkeys-lru")
        yield
        await redis.config_set("maxmemory", "0")
        await redis.config_set("maxmemory-policy", "noeviction")


@pytest.mark.usefixtures("full_redis")
@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_a_redis_that_evicts_keys_or_is_too_small_is_a_warning(run: Run) -> None:
    code, found = await run("--faults")
    assert code == 0
    texts = not_ok(found)
    assert texts.keys() == {"maxmemory-policy", "memory"}
    assert "set maxmemory-policy noeviction" in texts["maxmemory-policy"]
    assert "fewer than reader.backlog_limit (268,435,456)" in texts["memory"]


@pytest.fixture
async def prepared(
    source: Server, schema: str, redis_server: Server, kafka: Server, tmp_path: Path
) -> AsyncIterator[Path]:
    """The configuration that `databus init` writes, after its SQL was run."""
    config, sql, user = tmp_path / "databus.yaml", tmp_path / "prepare.sql", f"u_{secrets.token_hex(4)}"
    arguments = ["--name", schema, "--server", source.kind, "--hosts", f"{source.host}:{source.port}", "--user", user]
    arguments += ["--redis", redis_server.url, "--kafka", kafka.url, "--sql", str(sql)]
    assert await asyncio.to_thread(main, ["init", str(config), *arguments]) == 0
    lines = [line for line in sql.read_text().splitlines() if not line.startswith("--")]
    async with connected(source) as execute:
        for statement in "\n".join(lines).split(";"):
            if statement.strip():
                await execute(statement)
        yield config
        await execute(f"DROP USER {user}@'%'")


async def test_after_init_and_its_sql_nothing_is_wrong(
    prepared: Path, execute: Execute, capfd: pytest.CaptureFixture[str]
) -> None:
    await execute("CREATE TABLE t (a INT PRIMARY KEY)")
    code = await asyncio.to_thread(main, ["check", "--faults", "--config", str(prepared)])
    [line] = capfd.readouterr().out.splitlines()
    assert code == 0
    assert line.endswith(" ok, 0 warning, 0 wrong")
