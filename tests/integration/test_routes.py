"""Routing on a real Redis and Kafka: several outputs publish a change, each by its own rule."""

import json
from base64 import b64decode
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import time_ns
from typing import Any

import msgspec
import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from msgspec.structs import replace

from common.pipelines import Consume
from databus_core.errors import InvalidSettings
from databus_core.events import Action, Commit, DatabaseEvent, OversizedRow, QueryEvent, Table, TableDefinition
from databus_core.kafka_client import consumer
from databus_core.kafka_progress import read_progress
from databus_core.names import SEQUENCE_HEADER
from databus_core.settings import Settings
from databus_core.settings.services import Doubts
from databus_messages import transaction_buffer
from devstack import Server
from integration.publisher_in_process import ITEMS, TIME, Publisher, Run

Read = Callable[[str, int], Awaitable[list[Any]]]


@pytest.fixture
def read(kafka: Server) -> Read:
    async def records(topic: str, count: int) -> list[Any]:
        """Read the first committed records of a topic's first partition."""
        client = AIOKafkaConsumer(
            bootstrap_servers=kafka.url, isolation_level="read_committed", auto_offset_reset="earliest"
        )
        await client.start()
        try:
            client.assign([TopicPartition(topic, 0)])
            return [await client.getone() for _ in range(count)]
        finally:
            await client.stop()

    return records


@pytest.fixture
def rowwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a third party's format."""
    package = tmp_path / "site" / "rowwise-1.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: rowwise\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[databus.formats]\nrowwise = integration.rowwise_format:Rowwise\n")
    monkeypatch.syspath_prepend(package.parent)


async def test_ddl_goes_to_topics_that_are_created_for_it_unless_its_table_is_absent(
    configured: Callable[..., Settings], run: Run, read: Read, admin: AIOKafkaAdminClient
) -> None:
    settings = configured(
        routes=[
            {"match": ["*.*"], "format": "canal-json"},
            {"match": ["*.*"], "output": "changes", "format": "debezium-json",
             "topic": "{name}.changes.{table}"},
        ],
    )  # fmt: skip
    _, source = await run(settings)
    await source.commit(DatabaseEvent("shop", Action.CREATE, b"CREATE DATABASE shop", 4, 99, "utf8mb4"))
    await source.commit(DatabaseEvent("shop", Action.DROP, b"DROP DATABASE shop", 104, 199, None, (ITEMS.fingerprint,)))
    create, drop = [json.loads(record.value) for record in await read(f"{settings.name}.shop", 2)]
    assert (create["type"], create["sql"], drop["sql"]) == ("QUERY", "CREATE DATABASE shop", "DROP DATABASE shop")
    assert [json.loads(record.value)["sql"] for record in await read(f"{settings.name}.shop.items", 1)] == [drop["sql"]]
    absent = Table(schema="shop", name="absent", columns=())
    await source.commit(
        TableDefinition(absent), QueryEvent(absent.fingerprint, Action.DROP, b"DROP TABLE IF EXISTS absent", 204, 299)
    )
    assert [json.loads(record.value)["type"] for record in await read(f"{settings.name}.shop.absent", 1)] == ["ERASE"]
    _, change = [json.loads(record.value)["payload"] for record in await read(settings.name, 2)]
    assert [(each["type"], each["id"]) for each in change["tableChanges"]] == [("DROP", '"shop"."items"')]
    assert f"{settings.name}.changes.absent" not in await admin.list_topics()


async def test_two_outputs_publish_a_change_each_in_its_own_form(
    configured: Callable[..., Settings], run: Run, read: Read
) -> None:
    settings = configured(
        salt="pepper",
        routes=[
            {"match": ["shop.*"], "mask": ["text"], "rename": {"id": "number"}},
            {"match": ["*.*"], "output": "audit", "topic": "{name}.audit", "hash": ["id"],
             "columns": {"include": ["id"]}},
        ],
    )  # fmt: skip
    _, source = await run(settings)
    await source.commit(source.rows(Action.INSERT, [b"1", b"secret"], [b"2", None]))
    await source.commit(QueryEvent(ITEMS.fingerprint, Action.ALTER, b"ALTER TABLE items", 4, 99))
    masked, altered = [json.loads(record.value) for record in await read(f"{settings.name}.shop.items", 2)]
    assert [column["Name"] for column in masked["Table"]["Columns"]] == ["number", "text"]
    assert cells(masked) == [[b"1", b"***"], [b"2", None]]
    assert altered["Table"] == masked["Table"]
    audited, _ = [json.loads(record.value) for record in await read(f"{settings.name}.audit", 2)]
    assert [(column["Name"], column["RawType"]) for column in audited["Table"]["Columns"]] == [("id", "char(64)")]
    (one,), (two,) = cells(audited)
    assert len(one) == len(two) == 64
    assert one != two


async def test_an_update_into_and_out_of_a_filter_is_an_insert_and_a_delete(
    configured: Callable[..., Settings], run: Run, read: Read
) -> None:
    settings = configured(routes=[{"match": ["*.*"], "where": [{"column": "text", "in": ["a", "b"]}]}])
    _, source = await run(settings)
    images = [
        [b"%d" % n, text] for n, pair in enumerate(["ab", "ax", "xb", "xy"]) for text in (c.encode() for c in pair)
    ]
    await source.commit(source.rows(Action.UPDATE, *images))
    await source.commit(source.rows(Action.DELETE, [b"7", b"x"], [b"8", b"b"]))
    messages = [json.loads(record.value) for record in await read(f"{settings.name}.shop.items", 4)]
    assert [(message["Action"], cells(message)) for message in messages] == [
        ("update", [[b"0", b"a"], [b"0", b"b"]]),
        ("delete", [[b"1", b"a"]]),
        ("insert", [[b"2", b"b"]]),
        ("delete", [[b"8", b"b"]]),
    ]


async def test_the_key_columns_of_a_rule_determine_the_partition_of_a_row(
    configured: Callable[..., Settings], run: Run, changes: Consume
) -> None:
    settings = configured(routes=[{"match": ["*.*"], "key": ["text"]}])
    published = await changes(f"{settings.name}.shop.items", partitions=4)
    _, source = await run(settings)
    texts = [b"1", b"4", b"5"]
    await source.commit(source.rows(Action.INSERT, *([b"%d" % n, texts[n % 3]] for n in range(30))))
    messages = await published.until(3)
    assert sum(len(message["Rows"]) for message in messages) == 30
    found = {(message["Partition"], row[1]) for message in messages for row in message["Rows"]}
    assert found == {(3, b"1"), (0, b"4"), (2, b"5")}


async def test_changes_that_a_rule_drops_are_not_published_and_the_progress_includes_them(
    configured: Callable[..., Settings], run: Run, read: Read, admin: AIOKafkaAdminClient
) -> None:
    settings = configured(routes=[{"match": ["shop.items"], "drop": True}, {"match": ["shop.*"]}])
    kept = msgspec.structs.replace(ITEMS, name="kept")
    _, source = await run(settings)
    await source.commit(source.insert((1, 9)))
    rows = msgspec.structs.replace(source.insert((2, 9)), table=kept.fingerprint)
    await source.commit(TableDefinition(kept), rows)
    (record,) = await read(f"{settings.name}.shop.kept", 1)
    assert json.loads(record.value)["Table"]["Name"] == "kept"
    assert f"{settings.name}.shop.items" not in await admin.list_topics()
    progress = await read_progress(settings, to_end=True)
    assert progress
    assert progress.transaction == 2


@pytest.mark.parametrize("memory", [10, 2**20])
async def test_a_transaction_is_buffered_for_formats_that_need_its_end(
    configured: Callable[..., Settings],
    run: Run,
    read: Read,
    rowwise: None,
    monkeypatch: pytest.MonkeyPatch,
    memory: int,
) -> None:
    monkeypatch.setattr(transaction_buffer, "_MEMORY_BYTES", memory)
    settings = configured(
        routes=[
            {"match": ["*.*"], "output": "rows", "format": "rowwise", "topic": "{name}.rows",
             "where": [{"column": "id", "not_in": [2]}]},
            {"match": ["*.*"]},
        ]
    )  # fmt: skip
    began = time_ns()
    _, source = await run(settings)
    first = msgspec.structs.replace(
        source.insert((1, 1), (2, 1), (3, 1)), query=b"INSERT INTO items VALUES (2, 'secret')"
    )
    await source.begin(first, source.rows(Action.UPDATE, [b"4", b""], [b"5", b""], first=3))
    await source.append(source.insert((2, 1), first=4), Commit("", "log.1", 900, 77))
    await source.commit(source.insert((2, 1)))  # filtered, so the output `rows` has no messages of this transaction
    await source.commit(source.insert((6, 1)))
    records = await read(f"{settings.name}.rows", 5 + 3)
    assert all(began // 10**6 <= record.timestamp <= time_ns() // 10**6 for record in records)
    assert [msgspec.json.decode(record.value) for record in records] == [
        "begin",
        ["items", "insert", "1", 0, False, None],
        ["items", "insert", "3", 1, False, None],
        ["items", "update", "5", 2, True, None],
        "end",
        "begin",
        ["items", "insert", "6", 0, True, None],
        "end",
    ]
    # ordinals in values count the rows of the route; sequences count all rows
    sequences = [b"0000000000000001-%010d" % row for row in (0, 2, 3)]
    assert [record.headers for record in records[1:4]] == [
        (("xid", b"77"), (SEQUENCE_HEADER, sequence)) for sequence in sequences
    ]
    lines = [record.value.decode() for record in await read(f"{settings.name}.transactions", 7)]
    time = str(TIME)
    assert lines == ["1 begins", "1 ends with 3", time, time, "3 begins", "3 ends with 1", time]


async def test_dead_letters_of_each_output_are_separate_and_name_topic_and_format(
    configured: Callable[..., Settings], run: Run, read: Read, rowwise: None, dead_letters: Any
) -> None:
    settings = configured(
        topic_settings={"max.message.bytes": 20_000},
        routes=[
            {"match": ["*.*"], "topic": "{name}.{schema}.{table}"},
            {"match": ["*.*"], "output": "copy", "topic": "{name}.copy"},
            {"match": ["*.*"], "output": "rows", "topic": "{name}.rows", "format": "rowwise",
             "where": [{"column": "id", "not_in": [1]}]},
        ],
    )  # fmt: skip
    _, source = await run(settings)
    unread = OversizedRow(ITEMS.fingerprint, Action.INSERT, 2, 4, 104, 200_000_000)
    await source.commit(source.insert((1, 30_000), (2, 9)), unread)
    await read(f"{settings.name}.rows", 3)
    _, letters, _ = await dead_letters("list", "--json")
    found = {(letter["topic"].removeprefix(settings.name), letter["format"], letter["reason"]) for letter in letters}
    large = {(".shop.items", "databus", "too_large"), (".copy", "databus", "too_large")}
    lost = {
        (topic, kind, "unread")
        for topic, kind in [(".shop.items", "databus"), (".copy", "databus"), (".rows", "rowwise")]
    }
    assert found == large | lost
    assert len(letters) == len(found)
    # also for a format with transactions, which itself counts only the rows of its route
    rows = {letter["format"]: letter["row"] for letter in letters if letter["reason"] == "unread"}
    assert rows == {"databus": 2, "rowwise": 2}


@pytest.mark.parametrize(
    ("others", "query"),
    [
        ([], "INSERT INTO items …"),
        ([{"match": ["hr.*"], "drop": True}], None),
        ([{"match": ["hr.*"], "mask": ["*"]}], None),
    ],
)
async def test_a_statement_that_could_reveal_other_tables_is_not_published(
    configured: Callable[..., Settings], run: Run, read: Read, others: list[dict[str, Any]], query: str | None
) -> None:
    maxwell = {"match": ["*.*"], "format": "maxwell-json", "options": {"output_row_query": True}}
    settings = configured(routes=[*others, maxwell])
    _, source = await run(settings)
    await source.commit(replace(source.rows(Action.INSERT, [b"1", b"a"]), query="INSERT INTO items …".encode()))
    [record] = await read(f"{settings.name}.shop.items", 1)
    assert json.loads(record.value).get("query") == query


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ({"mask": ["txet"]}, "there is no column txet"),
        ({"mask": ["id"]}, "column id is part of the primary key"),
        ({"columns": {"exclude": ["id"]}}, "columns: id is part of the primary key: publish it (`hash` hides values)"),
        ({"where": [{"column": "id", "equals": "many"}]}, "'many' is not a value of column id, which is int"),
        ({"key": ["nowhere"]}, "key: there is no column nowhere"),
        ({"rename": {"text": "ID"}}, "rename: two columns would have the same name"),
    ],
)
async def test_a_rule_that_does_not_fit_a_table_stops_the_publisher_before_its_first_record(
    configured: Callable[..., Settings], run: Run, rule: dict[str, Any], reason: str
) -> None:
    settings = configured(salt="x", routes=[{"match": ["other.*"]}, {"match": ["shop.*"]} | rule])
    settings = settings.model_copy(update={"doubt": Doubts(on_doubt="stop")})
    publisher, source = await run(settings)
    await source.commit(source.insert((1, 9)))
    failure = await publisher.failure()
    assert isinstance(failure, InvalidSettings)
    assert str(failure).startswith(f"publisher.routes: rule 2 does not fit table shop.items: {reason}")
    partition = TopicPartition(f"{settings.name}.shop.items", 0)
    async with consumer(settings.kafka, "read_uncommitted") as reading:
        assert await reading.end_offsets([partition]) == {partition: 0}


async def test_a_rule_may_truncate_and_hash_its_key_column(
    configured: Callable[..., Settings], run: Run, read: Read
) -> None:
    rule = {"truncate": {"id": 3}, "hash": ["id"], "key": ["id"], "columns": {"include": ["id"]}}
    settings = configured(salt="x", routes=[{"match": ["shop.*"]} | rule])
    _, source = await run(settings)
    await source.commit(source.insert((1, 9)))
    assert len(await read(f"{settings.name}.shop.items", 1)) == 1


async def test_an_unknown_format_is_refused_at_the_start_and_the_error_names_its_rule(
    configured: Callable[..., Settings],
) -> None:
    publisher = Publisher(configured(routes=[{"match": ["*.*"]}, {"match": ["a.b"], "format": "morse"}]))
    failure = await publisher.failure()
    assert isinstance(failure, InvalidSettings)
    assert str(failure).startswith("publisher.routes: rule 2: format morse is not known: use one of ")


def cells(message: dict[str, Any]) -> list[list[Any]]:
    return [[None if cell is None else b64decode(cell) for cell in row] for row in message["Rows"]]
