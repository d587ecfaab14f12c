"""The publisher on a real Redis and Kafka: rows that cannot be published, partitions, and what ends a publisher."""

import asyncio
import hashlib
import json
from base64 import b64decode
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec
import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from msgspec.structs import replace

from common.pipelines import Changes, Consume
from databus_core.errors import FatalError, InvalidSettings, PoisonError
from databus_core.events import (
    Action,
    OversizedRow,
    QueryEvent,
    TableDefinition,
)
from databus_core.kafka_history import read_history
from databus_core.kafka_progress import read_progress
from databus_core.settings import Settings
from databus_messages.formats.base import Change, Record
from databus_messages.formats.databus import Databus
from integration.publisher_in_process import ITEMS, TIME, Publisher, Run

#: max.message.bytes of the topics that `consume` creates
LIMIT = 20_000


@pytest.fixture
def consume(changes: Consume) -> Consume:
    """Create the topic of table shop.items with a small limit, and consume it."""

    async def start(settings: Settings, partitions: int = 1) -> Changes:
        return await changes(topic_of(settings), partitions=partitions, **{"max.message.bytes": str(LIMIT)})

    return start


async def set_limit(admin: AIOKafkaAdminClient, topic: str, limit: int) -> None:
    resource = ConfigResource(ConfigResourceType.TOPIC, topic, {"max.message.bytes": str(limit)})
    (answer,) = await admin.alter_configs([resource])
    assert not answer.resources[0][0]


def topic_of(settings: Settings) -> str:
    return f"{settings.name}.shop.items"


def numbers(messages: list[dict[str, Any]]) -> list[int]:
    return [int(row[0]) for message in messages for row in message["Rows"]]


async def test_a_record_that_is_too_large_becomes_a_dead_letter_and_the_others_are_published(
    configured: Callable[..., Settings], run: Run, consume: Consume, dead_letters: Any
) -> None:
    settings = configured()
    consumer = await consume(settings)
    _, source = await run(settings)
    await source.commit(source.insert((1, 9)), source.insert((2, LIMIT), first=1), source.insert((3, 9), first=2))
    assert numbers(await consumer.until(2)) == [1, 3]
    code, (letter,), _ = await dead_letters("list", "--json")
    assert code == 0
    assert letter.items() >= {
        "reason": "too_large", "topic": topic_of(settings), "partition": 0, "schema": "shop", "table": "items",
        "action": "insert", "file": "log.1", "start": 104, "end": 204, "transaction": 1, "row": 1,
        "time": TIME, "value": True, "key": '{"Pos":{"Name":"log.1","Pos":204},"Action":"DML"}',
    }.items()  # fmt: skip
    code, _, _ = await dead_letters("list")
    assert code == 0


async def test_a_format_with_a_message_per_row_leaves_out_only_the_row_that_is_too_large(
    configured: Callable[..., Settings], run: Run, consume: Consume, dead_letters: Any
) -> None:
    settings = configured(format="debezium-json", options={"schemas_enable": False})
    consumer = await consume(settings)
    _, source = await run(settings)
    await source.commit(source.insert(*((n, LIMIT if n == 44 else 900) for n in range(100)), first=7))
    messages = await consumer.until(99)
    rows = [n for n in range(100) if n != 44]
    for section, member in ("Key", "id"), ("after", "id"), ("source", "row"):
        assert [message[section][member] for message in messages] == rows
    _, (letter,), _ = await dead_letters("list", "--json")
    assert (letter["row"], letter["record"], letter["key"]) == (51, 44, '{"id":44}')


async def test_a_dead_letter_names_its_row_if_some_rows_have_more_records_than_others(
    configured: Callable[..., Settings], run: Run, consume: Consume, dead_letters: Any
) -> None:
    """Only the third row changes its key, so only it has two records: a delete and an insert."""
    settings = configured(format="debezium-json", options={"schemas_enable": False, "tombstones_on_delete": False})
    consumer = await consume(settings)
    _, source = await run(settings)
    large = b"x" * LIMIT
    rows = [b"1", b""], [b"1", b"a"], [b"2", b""], [b"2", b"a"], [b"3", large], [b"4", large]
    await source.commit(source.rows(Action.UPDATE, *rows))
    assert [message["Key"]["id"] for message in await consumer.until(2)] == [1, 2]
    _, letters, _ = await dead_letters("list", "--json")
    assert [(letter["key"], letter["row"]) for letter in letters] == [('{"id":3}', 2), ('{"id":4}', 2)]


async def test_a_dead_letter_is_replayed_once_its_topic_accepts_it(
    configured: Callable[..., Settings], run: Run, consume: Consume, admin: AIOKafkaAdminClient, dead_letters: Any
) -> None:
    settings = configured()
    consumer = await consume(settings)
    _, source = await run(settings)
    await source.commit(source.insert((1, LIMIT)), source.insert((2, 9), first=1))
    assert numbers(await consumer.until(1)) == [2]
    code, _, err = await dead_letters("replay")
    assert code == 1
    assert f"topic {topic_of(settings)} accepts {LIMIT} bytes" in err
    assert "raise its max.message.bytes, and its segment.bytes if that is lower" in err
    await set_limit(admin, topic_of(settings), 10 * LIMIT)
    await source.commit(source.insert((3, 2 * LIMIT)))  # the publisher notices the new limit without a restart
    assert numbers(await consumer.until(1)) == [3]
    code, _, err = await dead_letters("replay")
    assert (code, err) == (0, "databus: replayed: 1, left: 0\n")
    (message,) = await consumer.until(1)
    assert message["Rows"] == [[b"1", b"x" * LIMIT]]
    assert message["Key"]["Pos"] == {"Name": "log.1", "Pos": 104}
    assert (await dead_letters("list", "--json"))[1] == []
    assert await dead_letters("replay", "--to", "nowhere") == (
        1,
        [],
        "databus: --to: there is no topic nowhere; create it first\n",
    )


async def test_split_divides_the_rows_of_an_event_and_leaves_out_only_the_row_that_is_too_large(
    configured: Callable[..., Settings], run: Run, consume: Consume, dead_letters: Any
) -> None:
    settings = configured(oversize="split")
    consumer = await consume(settings)
    _, source = await run(settings)
    await source.commit(source.insert(*((n, LIMIT if n == 4 else LIMIT // 5) for n in range(10)), first=70))
    messages = await consumer.until(4)
    assert numbers(messages) == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    assert len({message["Key"]["Pos"]["Pos"] for message in messages}) == 1
    _, (letter,), _ = await dead_letters("list", "--json")
    assert (letter["row"], letter["value"]) == (74, True)


async def test_split_keeps_the_two_images_of_an_update_together(
    configured: Callable[..., Settings], run: Run, consume: Consume
) -> None:
    settings = configured(oversize="split")
    consumer = await consume(settings)
    _, source = await run(settings)
    images = [[b"%d" % n, b"%d" % version * (LIMIT // 5)] for n in range(3) for version in (1, 2)]
    await source.commit(source.rows(Action.UPDATE, *images))
    messages = await consumer.until(3)
    assert [message["Rows"] for message in messages] == [images[0:2], images[2:4], images[4:6]]


async def test_a_claim_check_has_the_location_of_the_value(
    configured: Callable[..., Settings], run: Run, consume: Consume, dead_letters: Any
) -> None:
    settings = configured(oversize="claim_check")
    consumer = await consume(settings)
    _, source = await run(settings)
    await source.commit(source.insert((1, LIMIT)), source.insert((2, 9), first=1))
    check, message = await consumer.until(2)
    assert numbers([message]) == [2]
    assert (check["Table"]["Name"], check["Action"]) == ("items", "insert")
    claim = check["ClaimCheck"]
    value = await asyncio.to_thread(Path(unquote(urlsplit(claim["url"]).path)).read_bytes)
    assert (len(value), hashlib.sha256(value).hexdigest()) == (claim["bytes"], claim["sha256"])
    assert b64decode(json.loads(value)["Rows"][0][1]) == b"x" * LIMIT
    assert (await dead_letters("list", "--json"))[1] == []


async def test_policy_stop_ends_the_publisher_and_the_error_names_table_and_position(
    configured: Callable[..., Settings], run: Run, consume: Consume
) -> None:
    settings = configured(oversize="stop")
    await consume(settings)
    publisher, source = await run(settings)
    await source.commit(source.insert((1, LIMIT)))
    failure = await publisher.failure()
    assert isinstance(failure, FatalError)
    assert str(failure).startswith("insert of shop.items at log.1:4 takes")
    progress = await read_progress(settings)
    assert progress is not None
    assert progress.transaction == 0


#: an update of 200 MB, larger than reader.row_limit
UNREAD = OversizedRow(ITEMS.fingerprint, Action.UPDATE, 5, 4, 104, 200_000_000)


async def test_policy_stop_ends_the_publisher_at_a_row_that_was_not_read(
    configured: Callable[..., Settings], run: Run
) -> None:
    publisher, source = await run(configured(oversize="stop"))
    await source.commit(UNREAD)
    assert "shop.items at log.1:4" in str(await publisher.failure())


async def test_a_row_that_was_not_read_becomes_a_dead_letter_without_value(
    configured: Callable[..., Settings], run: Run, consume: Consume, dead_letters: Any
) -> None:
    settings = configured(oversize="deadletter")
    consumer = await consume(settings)
    _, source = await run(settings)
    await source.commit(UNREAD, source.insert((1, 9), first=6))
    assert numbers(await consumer.until(1)) == [1]
    _, (letter,), _ = await dead_letters("list", "--json")
    assert letter.items() >= {"reason": "unread", "row": 5, "bytes": 200_000_000, "value": False}.items()
    code, _, err = await dead_letters("replay")
    assert code == 1
    assert "databus binlog log.1 --row-limit 191MiB --tables shop.items --format databus" in err


async def test_a_row_that_cannot_be_encoded_becomes_a_dead_letter(
    configured: Callable[..., Settings], run: Run, consume: Consume, dead_letters: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The `databus` format can encode every value, so the test makes its encoder refuse one."""
    encode = Databus.change

    def encode_all_but_2(databus: Databus, change: Change) -> Iterable[Record]:
        if any(row[0] == b"2" for row in change.rows):
            raise PoisonError("2 is refused")
        return encode(databus, change)

    monkeypatch.setattr(Databus, "change", encode_all_but_2)
    settings = configured(oversize="split")
    consumer = await consume(settings)
    _, source = await run(settings)
    await source.commit(source.insert((1, 9), (2, 9), (3, 9), (4, 9)))
    assert numbers(await consumer.until(2)) == [1, 3, 4]
    _, (letter,), _ = await dead_letters("list", "--json")
    assert letter.items() >= {"reason": "unencodable", "row": 1, "value": False}.items()
    assert letter["error"].endswith("2 is refused")


async def test_no_row_is_lost_when_a_topics_limit_is_lowered_while_the_publisher_runs(
    configured: Callable[..., Settings], run: Run, consume: Consume, admin: AIOKafkaAdminClient, dead_letters: Any
) -> None:
    settings = configured()
    consumer = await consume(settings)
    _, source = await run(settings)
    await source.commit(source.insert((1, 9)))
    assert numbers(await consumer.until(1)) == [1]
    await set_limit(admin, topic_of(settings), LIMIT // 4)
    events = [source.insert((n, LIMIT // 2 if n == 5 else LIMIT // 40), first=n) for n in range(2, 20)]
    await source.commit(*events)
    await source.claim()
    await source.commit(*events)
    assert numbers(await consumer.until(17)) == [n for n in range(2, 20) if n != 5]
    assert [letter["row"] for letter in (await dead_letters("list", "--json"))[1]] == [5]


async def test_rows_of_a_key_stay_in_one_partition_and_statements_go_to_all(
    configured: Callable[..., Settings], run: Run, consume: Consume, admin: AIOKafkaAdminClient
) -> None:
    settings = configured(partition_by="primary_key", partitions=4)
    consumer = await consume(settings, partitions=4)
    publisher, source = await run(settings)
    # the CRC-32 of key 1 gives partition 3; the CRC-32 of keys 2 and 0 gives partition 1
    moved, kept = ([b"1", b""], [b"2", b""]), ([b"2", b""], [b"0", b""])
    await source.commit(source.insert(*((n, 9) for n in range(40))))
    await source.commit(source.rows(Action.UPDATE, *moved, *kept))
    await source.commit(QueryEvent(ITEMS.fingerprint, Action.ALTER, b"ALTER TABLE items", 4, 99))
    messages = await consumer.until(4 + 3 + 4)
    inserted = {m["Partition"]: numbers([m]) for m in messages if m["Key"]["Pos"]["Pos"] == 104}
    assert sorted(chain(*inserted.values())) == list(range(40))
    assert all(found == sorted(found) for found in inserted.values())
    changed = [m for m in messages if m["Key"]["Pos"]["Pos"] == 304]
    assert sorted((m["Partition"], m["Action"], m["Rows"]) for m in changed) == [
        (1, "insert", [moved[1]]),
        (1, "update", [*kept]),
        (3, "delete", [moved[0]]),
    ]
    assert sorted(m["Partition"] for m in messages if m["Action"] == "alter") == [0, 1, 2, 3]
    await publisher.stop()
    await admin.create_partitions({topic_of(settings): NewPartitions(8)})
    _, source = await run(settings)
    await source.commit(source.rows(Action.DELETE, *([b"%d" % n, b""] for n in range(40))))
    deleted = {message["Partition"]: numbers([message]) for message in await consumer.until(4)}
    assert deleted == inserted


async def test_a_publisher_that_is_stopped_commits_only_complete_transactions(
    configured: Callable[..., Settings], run: Run, consume: Consume
) -> None:
    settings = configured()
    consumer = await consume(settings)
    publisher, source = await run(settings)
    await source.commit(source.insert((1, 9)))
    await consumer.until(1)
    await source.begin(source.insert((2, 9)))
    await source.append(source.insert((3, 9), first=1))
    await publisher.stop()
    progress = await read_progress(settings)
    assert progress is not None
    assert progress.transaction == 1
    _, source = await run(settings)
    await source.commit(source.insert((2, 9), (3, 9)))
    assert numbers(await consumer.until(1)) == [2, 3]


@pytest.mark.parametrize(("by", "used"), [("table", [2]), ("primary_key", [2]), ("single", [0])])
async def test_a_table_without_primary_key_stays_in_one_partition(
    configured: Callable[..., Settings], run: Run, changes: Consume, by: str, used: list[int]
) -> None:
    settings = configured(partition_by=by, partitions=3)
    keyless = msgspec.structs.replace(ITEMS, name="log", primary_key=())
    consumer = await changes(f"{settings.name}.shop.log", partitions=3)
    _, source = await run(settings)
    rows = msgspec.structs.replace(source.insert(*((n, 9) for n in range(20))), table=keyless.fingerprint)
    await source.commit(TableDefinition(keyless), rows)
    (message,) = await consumer.until(1)
    assert ([message["Partition"]], numbers([message])) == (used, list(range(20)))


async def test_existing_topics_are_not_altered_and_new_ones_are_created_as_configured(
    configured: Callable[..., Settings], run: Run, changes: Consume, admin: AIOKafkaAdminClient
) -> None:
    settings = configured(partitions=3, topic_settings={"retention.ms": 123456, "max.message.bytes": "30000"})
    kept = msgspec.structs.replace(ITEMS, name="kept")
    existing = await changes(f"{settings.name}.shop.kept", partitions=2, **{"retention.ms": "777"})
    _, source = await run(settings)
    rows = msgspec.structs.replace(source.insert((2, 9)), table=kept.fingerprint)
    await source.commit(TableDefinition(kept), source.insert((1, 9)), rows)
    await source.wait_until_published()
    await (await changes(topic_of(settings), partitions=3)).until(1)
    await existing.until(1)
    wanted = {topic_of(settings): ("123456", "30000"), f"{settings.name}.shop.kept": ("777", "1048588")}
    for topic, values in wanted.items():
        (answer,) = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
        found = {name: value for name, value, *_ in answer.resources[0][4]}
        assert (found["retention.ms"], found["max.message.bytes"]) == values


async def test_a_transaction_timeout_that_the_broker_does_not_allow_is_reported(
    configured: Callable[..., Settings],
) -> None:
    publisher = Publisher(configured(transaction_timeout="2h"))
    failure = await publisher.failure()
    assert isinstance(failure, InvalidSettings)
    assert str(failure).startswith("publisher.transaction_timeout is longer than the broker allows")


async def test_a_reader_that_stalls_in_a_transaction_loses_its_generation_before_kafka_aborts_the_transaction(
    configured: Callable[..., Settings], run: Run, consume: Consume
) -> None:
    settings = configured(transaction_timeout="4s")
    changes = await consume(settings)
    _, source = await run(settings)
    await source.commit(source.insert((1, 1)))
    assert [message["Rows"][0][0] for message in await changes.until(1)] == [b"1"]
    await source.begin(source.insert((2, 1)))
    await source.claim()  # the publisher has opened another generation
    await source.commit(source.insert((3, 1)))
    assert [message["Rows"][0][0] for message in await changes.until(1)] == [b"3"]


async def test_a_first_start_that_failed_before_its_first_commit_can_be_repeated(
    configured: Callable[..., Settings], run: Run
) -> None:
    """With `at_least_once`, definitions that fill a batch are in the schema history before there is a progress."""
    settings = configured(delivery="at_least_once")
    wide = replace(ITEMS, columns=tuple(replace(ITEMS.columns[0], name=f"c{n}") for n in range(5000)))
    publisher, source = await run(settings, start=False)
    for number in range(3):
        await source.append(TableDefinition(replace(wide, name=f"t{number}")))
    await source.wait_until_published()
    await publisher.stop()
    assert (await read_history(settings)).tables
    publisher, source = await run(settings)
    await source.commit(source.insert((1, 9)))
    await source.wait_until_published()
