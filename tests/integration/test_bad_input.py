"""Each error that `--check` finds is reported in one line that names its cause, with an exit code and no traceback."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from common.connections import Execute, connected
from common.pipelines import MakePipeline, RunService
from devstack import Server
from devstack.pipeline import Pipeline

Check = Callable[[Pipeline, str], Awaitable[tuple[int, str]]]


@pytest.fixture
async def pipeline(make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute) -> Pipeline:
    """A pipeline that captures the test's schema, which has the table `t`."""
    await execute("CREATE TABLE t (a INT PRIMARY KEY)")
    return make_pipeline(source, schema)


def configure(pipeline: Pipeline, section: str, **values: Any) -> None:
    config = json.loads(pipeline.config.read_text())
    config[section] |= values
    pipeline.config.write_text(json.dumps(config))


@pytest.fixture
def check(run_service: RunService) -> Check:
    """Run `--check`, and return exit code and output."""

    async def run(pipeline: Pipeline, service: str) -> tuple[int, str]:
        code, output = await run_service(service, pipeline.config, "--check")
        assert "Traceback" not in output
        return code, output.strip()

    return run


@pytest.mark.parametrize("service", ["reader", "publisher"])
async def test_a_good_configuration_is_ready(pipeline: Pipeline, service: str, check: Check) -> None:
    assert await check(pipeline, service) == (0, f"databus-{service}: ready")


async def test_a_wrong_password_is_named(pipeline: Pipeline, source: Server, check: Check) -> None:
    configure(pipeline, "source", password_file=None, password="wrong")
    code, output = await check(pipeline, "reader")
    assert code == 78
    assert len(output.splitlines()) == 1
    assert source.user in output
    assert "source.password" in output


@pytest.fixture
async def account(source: Server) -> AsyncIterator[str]:
    """An account without any privilege."""
    name = f"u_{secrets.token_hex(4)}"
    async with connected(source) as execute:
        await execute(f"CREATE USER {name}@'%' IDENTIFIED BY 'secret'")
        yield name
        await execute(f"DROP USER {name}@'%'")


@pytest.fixture
async def unnamed(source: Server) -> AsyncIterator[None]:
    """The binlog does not name columns."""
    async with connected(source) as execute:
        await execute("SET GLOBAL binlog_row_metadata = 'MINIMAL'")
        yield
        await execute("SET GLOBAL binlog_row_metadata = 'FULL'")


@pytest.mark.usefixtures("unnamed")
async def test_every_missing_grant_is_named(
    pipeline: Pipeline, source: Server, account: str, schema: str, check: Check
) -> None:
    configure(pipeline, "source", user=account, password_file=None, password="secret")
    async with connected(source) as execute:  # MariaDB needs RELOAD only if it executes XA COMMITs
        for statement in ("START", "END", "PREPARE", "COMMIT"):
            await execute(f"XA {statement} '{account}'")
    expected = {
        "reader": ["lacks SELECT on", "GRANT REPLICATION CLIENT", "GRANT REPLICATION SLAVE"],
        "dump-api": ["lacks SELECT on", "GRANT REPLICATION CLIENT", "GRANT RELOAD"],
    }
    for service, grants in expected.items():
        code, output = await check(pipeline, service)
        assert code == 78
        faults = [line for line in output.splitlines() if " ERROR " in line]
        assert len(faults) == len(grants)
        assert all(any(grant in fault for fault in faults) for grant in grants)
    async with connected(source) as execute:
        await execute(f"CREATE TABLE {schema}.u (a INT PRIMARY KEY)")
        await execute(f"GRANT REPLICATION SLAVE, REPLICATION CLIENT, RELOAD ON *.* TO {account}@'%'")
        await execute(f"GRANT SELECT ON {schema}.t TO {account}@'%'")
        await execute(f"GRANT INSERT ON {schema}.u TO {account}@'%'")
        code, output = await check(pipeline, "dump-api")
        assert code == 78
        assert f"lacks SELECT on {schema}.u: grant it" in output
        await execute(f"GRANT SELECT ON {schema}.u TO {account}@'%'")
    for service in expected:
        code, output = await check(pipeline, service)
        assert (code, output.splitlines()[-1]) == (0, f"databus-{service}: ready")


async def test_all_hosts_are_checked(pipeline: Pipeline, source: Server, account: str, check: Check) -> None:
    hosts = ["127.0.0.1:1", f"{source.host}:{source.port}", "127.0.0.1:2"]
    configure(pipeline, "source", hosts=hosts, user=account, password_file=None, password="secret")
    for service in "reader", "dump-api":
        code, output = await check(pipeline, service)
        assert code == 78
        assert all(host in output for host in hosts)


async def test_a_pattern_that_matches_no_table_is_a_warning(pipeline: Pipeline, schema: str, check: Check) -> None:
    configure(pipeline, "source", include=[f"{schema}.*", "shopp.*"])
    for service in "reader", "dump-api":
        code, output = await check(pipeline, service)
        assert (code, output.splitlines()[-1]) == (0, f"databus-{service}: ready")
        assert "source.include: shopp.* matches no table" in output
        assert f"{schema}.* matches no table" not in output


async def test_tables_whose_rows_change_without_being_logged_are_named(
    pipeline: Pipeline, source: Server, schema: str, execute: Execute, check: Check
) -> None:
    """MySQL logs all changes since 9.6."""
    await execute("CREATE TABLE c (a INT PRIMARY KEY, FOREIGN KEY (a) REFERENCES t (a) ON DELETE CASCADE)")
    warning = f"messages lack these changes: {schema}.c (of {schema}.t)"
    code, output = await check(pipeline, "reader")
    assert (code, output.splitlines()[-1]) == (0, "databus-reader: ready")
    assert (warning in output) == (source.kind == "mariadb")
    await asyncio.to_thread(pipeline.start_all, "publisher", "reader")
    assert (warning in pipeline.log("reader").read_text()) == (source.kind == "mariadb")


async def test_tables_whose_topics_collide_and_rules_that_do_not_fit_are_named(
    pipeline: Pipeline, schema: str, execute: Execute, check: Check
) -> None:
    await execute("CREATE TABLE `a$b` (a INT PRIMARY KEY, b INT, c INT)")
    await execute("CREATE TABLE `a.b` (a INT PRIMARY KEY, b INT)")
    configure(pipeline, "publisher", routes=[{"match": ["*.a*"], "rename": {"b": "C"}}])
    code, output = await check(pipeline, "reader")
    assert code == 78
    assert f"is the same as {pipeline.name}.{schema}.a_b" in output or f"is the topic of {schema}.a" in output
    code, output = await check(pipeline, "dump-api")
    assert code == 78
    assert "escape_names" in output
    assert f"rule 1 does not fit table {schema}.a$b: rename: two columns would have the same name" in output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prefixx": "x"}, "rule 2: options.prefixx: format debezium-json has no such option; it has prefix, "),
        ({}, "rule 2: format debezium-json writes to topic PIPELINE, and so does publisher.routes: rule 1"),
        ({"prefix": "other"}, "ready"),
    ],
)
async def test_wrong_options_and_a_shared_prefix_of_debezium_are_named(
    make_pipeline: MakePipeline, mariadb: Server, options: dict[str, Any], message: str, check: Check
) -> None:
    pipeline = make_pipeline(mariadb, "shop")
    first = {"match": ["*.*"], "format": "debezium-json"}
    routes = [first, first | {"output": "again", "topic": "again.{table}", "options": options}]
    configure(pipeline, "publisher", routes=routes)
    assert message.replace("PIPELINE", pipeline.name) in (await check(pipeline, "publisher"))[1]


@pytest.fixture
async def poor_log(source: Server) -> AsyncIterator[Execute]:
    """A server that may log statements and partial rows; its settings are restored afterwards."""
    async with connected(source) as execute:
        await execute("SET GLOBAL binlog_format = 'MIXED'")
        await execute("SET GLOBAL binlog_row_image = 'MINIMAL'")
        yield execute
        await execute("SET GLOBAL binlog_format = 'ROW'")
        await execute("SET GLOBAL binlog_row_image = 'FULL'")


@pytest.mark.usefixtures("poor_log")
async def test_every_wrong_setting_of_the_server_is_named(pipeline: Pipeline, check: Check) -> None:
    code, output = await check(pipeline, "reader")
    assert code == 78
    said = output.splitlines()
    assert len(said) == 2
    assert "set binlog_format=ROW" in said[0]
    assert "set binlog_row_image=FULL" in said[1]


@pytest.mark.parametrize(
    ("service", "section", "values", "setting"),
    [
        ("reader", "redis", {"url": "redis://127.0.0.1:1/0"}, "redis.url"),
        ("publisher", "redis", {"url": "redis://127.0.0.1:1/0"}, "redis.url"),
        ("publisher", "kafka", {"bootstrap_servers": ["127.0.0.1:1"]}, "kafka.bootstrap_servers"),
        ("reader", "source", {"hosts": ["127.0.0.1:1"]}, "127.0.0.1:1"),
    ],
)
async def test_a_dependency_that_is_not_running_is_named(
    make_pipeline: MakePipeline,
    mariadb: Server,
    service: str,
    section: str,
    values: dict[str, Any],
    setting: str,
    check: Check,
) -> None:
    pipeline = make_pipeline(mariadb, "shop")
    configure(pipeline, section, **values)
    code, output = await check(pipeline, service)
    assert code == 75
    (error,) = (line for line in output.splitlines() if " ERROR " in line)
    assert setting in error


async def test_an_unknown_key_is_named(make_pipeline: MakePipeline, mariadb: Server, check: Check) -> None:
    pipeline = make_pipeline(mariadb, "shop")
    configure(pipeline, "kafka", brokers=["x:1"])
    code, output = await check(pipeline, "publisher")
    assert code == 78
    assert "kafka.brokers" in output
