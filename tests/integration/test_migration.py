"""The guides for those who come from other systems: a pipeline starts exactly where the other one has stopped."""

import asyncio
import json
import re
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from common.connections import Execute, session_on
from common.pipelines import MakePipeline, run_until_idle
from common.topics import ends_of
from databus_binlog import Position
from databus_binlog.session import Session
from databus_core.settings import load
from devstack import Server

GUIDES = Path(__file__).parents[2] / "docs/guide"
SYSTEMS = ["debezium", "maxwell", "canal"]
#: the last record of the other system in the topic
OLD = {"by": "the other system"}


def blocks(page: str, language: str) -> list[str]:
    """Return the blocks of code of a page in one language."""
    return re.findall(rf"```{language}\n(.*?)```", (GUIDES / f"{page}.md").read_text(), re.DOTALL)


def configuration(system: str) -> str:
    [text] = blocks(f"migrate-from-{system}", "yaml")
    return text


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_configuration_of_a_guide_is_valid(system: str, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("secret")
    file = tmp_path / "databus.yaml"
    file.write_text(configuration(system).replace("/run/secrets/mysql-password", str(password)))
    settings = load(file)
    assert settings.publisher.format.startswith(system)


class Stopped(NamedTuple):
    """Where another system has stopped: it has published the transaction of row 2 to its end, and nothing later."""

    execute: Execute
    session: Session
    schema: str
    #: before the transaction of row 2, and behind it
    before: Position
    after: Position

    async def events(self, statement: str) -> list[dict[str, Any]]:
        """Return the rows of SHOW BINLOG EVENTS."""
        names = ["Log_name", "Pos", "Event_type", "Server_id", "End_log_pos", "Info"]
        return [dict(zip(names, row, strict=True)) for row in await self.session.query(statement)]

    async def event(self, info: str) -> dict[str, Any]:
        """Return an event of the transaction of row 2: `GTID` or `BEGIN`, or `COMMIT`, which ends it."""
        events = await self.events(f"SHOW BINLOG EVENTS IN '{self.before.file}' FROM {self.before.offset}")
        rows = next(number for number, event in enumerate(events) if f"({self.schema}.t)" in event["Info"])
        candidates = events[rows:] if info == "COMMIT" else reversed(events[:rows])
        return next(event for event in candidates if info in event["Info"])

    async def gtid(self) -> str:
        """Return the GTID of the transaction of row 2, as `source.gtid` of its rows has it."""
        return re.split("[ ']", (await self.event("GTID"))["Info"].rstrip("'"))[-1]


@pytest.fixture
async def stopped(source: Server, schema: str, execute: Execute) -> AsyncIterator[Stopped]:
    await execute("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20))")
    await execute("INSERT INTO t VALUES (1, 'before')")
    async with session_on(source) as session:
        before = await session.current_position()
        await execute("INSERT INTO t VALUES (2, 'last')")
        after = await session.current_position()
        await execute("INSERT INTO t VALUES (3, 'next')")
        await execute("DELETE FROM t WHERE id = 3")
        yield Stopped(execute, session, schema, before, after)


async def debezium_after_a_row(stopped: Stopped) -> str:
    gtids, last = debezium_offset(gtids=stopped.before.gtid_set, event=2, row=1)["gtids"], await stopped.gtid()
    if ":" in last:  # MySQL
        return f"gtid:{gtids},{last}"
    others = [gtid for gtid in gtids.split(",") if gtid and gtid.split("-")[0] != last.split("-")[0]]
    return f"gtid:{','.join([*others, last])}"


async def debezium_after_a_row_without_gtids(stopped: Stopped) -> str:
    offset = debezium_offset(file=stopped.before.file, pos=(await stopped.event("BEGIN"))["Pos"], event=2, row=1)
    events = await stopped.events(f"SHOW BINLOG EVENTS IN '{offset['file']}' FROM {offset['pos']}")
    xid = next(event for event in events if event["Event_type"] == "Xid")
    return f"{offset['file']}:{xid['End_log_pos']}"


def debezium_offset(**members: object) -> dict[str, Any]:
    """Return the offset that the guide shows, with other values."""
    [text] = blocks("migrate-from-debezium", "json")
    [connector] = json.loads(text)["offsets"]
    assert connector["offset"].keys() >= members.keys()
    return connector["offset"] | members


async def maxwell(stopped: Stopped, gtid_set: str | None) -> str:
    create = (
        "CREATE TABLE positions (server_id INT, binlog_file VARCHAR(255), binlog_position INT, gtid_set VARCHAR(4096)"
    )
    await stopped.execute(f"{create}, client_id VARCHAR(255))")
    values = (stopped.after.file, stopped.after.offset, gtid_set)
    await stopped.execute("INSERT INTO positions VALUES (1, %s, %s, %s, 'maxwell')", *values)
    query, _ = blocks("migrate-from-maxwell", "sql")
    [[start]] = await stopped.session.query(query.replace("maxwell.positions", f"{stopped.schema}.positions"))
    return str(start)


async def maxwell_with_gtids(stopped: Stopped) -> str:
    return await maxwell(stopped, stopped.after.gtid_set)


async def maxwell_without_gtids(stopped: Stopped) -> str:
    return await maxwell(stopped, None)


def canal_cursor(**members: object) -> dict[str, Any]:
    """Return the position in the meta.dat that the guide shows, with other values."""
    [text] = blocks("migrate-from-canal", "json")
    [client] = json.loads(text)["clientDatas"]
    return client["cursor"]["postion"] | members


async def canal_with_gtids(stopped: Stopped) -> str:
    return f"gtid:{canal_cursor(gtid=stopped.after.gtid_set)['gtid']}"


async def canal_at_the_end_of_a_transaction(stopped: Stopped) -> str:
    cursor = canal_cursor(journalName=stopped.after.file, position=(await stopped.event("COMMIT"))["Pos"])
    [query] = blocks("migrate-from-canal", "sql")
    query = query.replace("mysql-bin.000007", cursor["journalName"]).replace("1234", str(cursor["position"]))
    [event] = await stopped.events(query)
    assert event["Event_type"] == "Xid"
    return f"{cursor['journalName']}:{event['End_log_pos']}"


@pytest.mark.parametrize(
    ("source", "read_start"),
    [
        ("mariadb", debezium_after_a_row),
        ("mysql", debezium_after_a_row),
        ("mariadb", debezium_after_a_row_without_gtids),
        ("mysql", debezium_after_a_row_without_gtids),
        ("mysql", maxwell_with_gtids),
        ("mariadb", maxwell_without_gtids),
        ("mysql", canal_with_gtids),
        ("mariadb", canal_at_the_end_of_a_transaction),
        ("mysql", canal_at_the_end_of_a_transaction),
    ],
    indirect=["source"],
)
async def test_a_pipeline_starts_exactly_where_the_other_system_stopped(
    make_pipeline: MakePipeline,
    source: Server,
    kafka: Server,
    stopped: Stopped,
    read_start: Callable[[Stopped], Awaitable[str]],
) -> None:
    system = read_start.__name__.partition("_")[0]
    sections = yaml.safe_load(configuration(system))
    publisher = with_topics_of(stopped.schema, sections["publisher"])
    reader = sections["reader"] | {"start": await read_start(stopped)}
    topic = publisher["topic"].format(schema=stopped.schema, table="t")
    await publish_as_the_other_system(kafka, topic)
    pipeline = make_pipeline(source, stopped.schema, "t", reader=reader, publisher=publisher)
    await run_until_idle(pipeline)
    old, *new = await records(kafka, topic)
    assert old == OLD
    assert ids(new, system) == [3, 3]


def with_topics_of(schema: str, publisher: dict[str, Any]) -> dict[str, Any]:
    """Return a guide's section `publisher` with topics of this test: the first word of their names is replaced."""
    topic = re.sub(r"^\w+", schema, publisher["topic"])
    options = {"prefix": schema} if "prefix" in publisher["options"] else {}
    return publisher | {"topic": topic, "options": publisher["options"] | options}


async def publish_as_the_other_system(kafka: Server, topic: str) -> None:
    async with AIOKafkaProducer(bootstrap_servers=kafka.url) as producer:
        await producer.send_and_wait(topic, json.dumps(OLD).encode())


async def records(kafka: Server, topic: str) -> list[Any]:
    """Return the values of all records in a topic but tombstones."""
    found = []
    async with AIOKafkaConsumer(
        topic, bootstrap_servers=kafka.url, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        ends = await ends_of(kafka, consumer.assignment())
        while any([await consumer.position(part) < end for part, end in ends.items()]):
            for batch in (await consumer.getmany(timeout_ms=100)).values():
                found += [json.loads(record.value) for record in batch if record.value]
    return found


def ids(values: list[Any], system: str) -> list[int]:
    """Return the column `id` of all changes."""
    match system:
        case "debezium":
            rows = [value["after"] or value["before"] for value in values]
        case "maxwell":
            rows = [value["data"] for value in values]
        case "canal":
            rows = [row for value in values for row in value["data"]]
    return [int(row["id"]) for row in rows]


@pytest.mark.parametrize("source", ["mysql"], indirect=True)
async def test_the_begin_of_a_transaction_which_canal_may_store_is_refused(
    make_pipeline: MakePipeline, source: Server, stopped: Stopped
) -> None:
    begin = await stopped.event("BEGIN")
    pipeline = make_pipeline(source, stopped.schema, reader={"start": f"{begin['Log_name']}:{begin['Pos']}"})
    pipeline.spawn("publisher")
    pipeline.spawn("reader")
    await asyncio.to_thread(pipeline.wait_ended, "reader", 90)
    assert "is inside a transaction" in pipeline.log("reader").read_text().splitlines()[-1]


@pytest.mark.parametrize("source", ["mariadb"], indirect=True)
async def test_the_program_of_the_guide_finds_records_that_differ(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute
) -> None:
    rules = []
    for system in SYSTEMS:
        publisher = yaml.safe_load(configuration(system))["publisher"]
        for name, masked in ("old", []), ("new", []), ("wrong", ["name"]):
            topic = f"{schema}-{system}-{name}"
            rule = {"match": ["*.*"], "output": f"{system}-{name}", "topic": topic, "mask": masked}
            options = publisher["options"] | ({"prefix": topic} if system == "debezium" else {})
            rules.append(rule | {"format": publisher["format"], "options": options})
    await execute("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20))")
    pipeline = make_pipeline(source, schema, publisher={"routes": rules})
    await run_until_idle(pipeline)
    await execute("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL)")
    await execute("UPDATE t SET name = 'c' WHERE id = 1")
    await execute("DELETE FROM t WHERE id = 2")
    await run_until_idle(pipeline)
    topics = [(system, *(f"{schema}-{system}-{name}" for name in ("old", "new", "wrong"))) for system in SYSTEMS]
    same = [compared(pipeline.kafka, old, new, system) for system, old, new, _ in topics]
    different = [compared(pipeline.kafka, old, wrong, system) for system, old, _, wrong in topics]
    assert await asyncio.gather(*same) == [[f"3 rows in {old} and 3 in {new}"] for _, old, new, _ in topics]
    for difference, _ in await asyncio.gather(*different):
        assert re.search("old: .*'c'.* new: .*'[*]{3}'", difference)


async def compared(kafka: Server, old: str, new: str, system: str) -> list[str]:
    """Run the program of the guide, and return its lines."""
    [program] = blocks("migrate", "python")
    arguments = [kafka.url, old, new, "0", system]
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, *arguments, stdout=PIPE)
    out, _ = await process.communicate()
    assert process.returncode == 0
    return out.decode().splitlines()
