"""A parked table is one record in the dead-letter topic, until the doubt about it ends."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from msgspec.structs import replace

from common.waiting import eventually
from databus_core.events import Action, OversizedRow, QueryEvent, StateRecord
from databus_core.kafka_table_states import read_states
from databus_core.kafka_topics import partition_counts
from databus_core.names import dead_letter_topic
from databus_core.pipeline_state import reset
from databus_core.redis_connection import connect_redis
from databus_core.settings import Settings
from databus_core.table_states import TableDoubt, doubt_key, encode
from integration.publisher_in_process import ITEMS, TIME, Run

DOUBT = TableDoubt(
    state="parked", reason="rollback", text="ROLLBACK at log.1:104", file="log.1", offset=104, since_us=TIME
)


def state(doubt: TableDoubt | None, table: str = "items") -> StateRecord:
    return StateRecord(doubt_key("shop", table), encode(doubt) if doubt else None)


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
async def test_a_parked_table_has_one_dead_letter_until_the_doubt_ends(
    configured: Callable[..., Settings], run: Run, dead_letters: Callable[..., Awaitable[Any]], delivery: str
) -> None:
    _, source = await run(configured(delivery=delivery))
    await source.commit(state(DOUBT), state(DOUBT, "orders"))
    await source.wait_until_published()
    _, letters, _ = await dead_letters("list", "--json")
    assert [each["table"] for each in letters] == ["items", "orders"]
    assert letters[0].items() >= {
        "reason": "parked", "error": "shop.items is parked: ROLLBACK at log.1:104", "schema": "shop", "topic": "",
        "action": "park", "file": "log.1", "start": 104, "time": TIME, "key": None, "value": False,
    }.items()  # fmt: skip

    await source.commit(state(replace(DOUBT, since_us=TIME + 1)))  # as after a new generation
    await source.commit(state(replace(DOUBT, state="filling"), "orders"))
    await source.wait_until_published()
    _, letters, _ = await dead_letters("list", "--json")
    assert sorted((each["table"], each["time"]) for each in letters) == [("items", TIME + 1), ("orders", TIME)]

    code, _, said = await dead_letters("replay")
    assert code == 1
    assert "shop.items at log.1:104: the dead letter stands for" in said
    assert "load the table again: databus backfill start shop.items --clean" in said
    assert "replayed: 0, left: 2" in said

    await source.commit(state(None))
    await source.wait_until_published()
    _, letters, _ = await dead_letters("list", "--json")
    assert [each["table"] for each in letters] == ["orders"]


async def test_a_new_publisher_knows_which_tables_are_parked(configured: Callable[..., Settings], run: Run) -> None:
    """DDL that cannot be published is no news of them."""
    settings = configured(routes=[{"match": ["shop.items"], "key": ["missing"]}])
    publisher, source = await run(settings)
    await source.commit(state(DOUBT))
    await source.wait_until_published()
    await publisher.stop()
    _, source = await run(settings)
    await source.commit(QueryEvent(ITEMS.fingerprint, Action.ALTER, b"ALTER TABLE items", 4, 90, ""))
    await source.wait_until_published()
    states, _ = await read_states(settings)
    assert states.doubts == {("shop", "items"): DOUBT}


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
async def test_a_reset_deletes_the_letters_of_the_doubts_that_it_deletes(
    configured: Callable[..., Settings],
    run: Run,
    dead_letters: Callable[..., Awaitable[Any]],
    delivery: str,
) -> None:
    settings = configured(delivery=delivery)
    publisher, source = await run(settings)
    unread = OversizedRow(ITEMS.fingerprint, Action.INSERT, 0, 4, 90, 9)
    await source.commit(state(DOUBT, "orders"), state(replace(DOUBT, state="filling")), unread)
    await source.wait_until_published()
    await publisher.stop()
    async with connect_redis(settings.redis) as redis:
        await reset(settings, redis)
    assert not (await read_states(settings))[0].doubts
    _, letters, _ = await dead_letters("list", "--json")
    assert [each["reason"] for each in letters] == ["unread"]


async def test_a_reset_needs_no_topic_of_dead_letters(
    configured: Callable[..., Settings], run: Run, admin: AIOKafkaAdminClient
) -> None:
    settings = configured()
    publisher, source = await run(settings)
    await source.commit(state(DOUBT))
    await source.wait_until_published()
    await publisher.stop()
    letters = dead_letter_topic(settings.name)
    await admin.delete_topics([letters])

    async def deleted() -> bool:
        return letters not in await partition_counts(admin)

    await eventually(deleted)
    async with connect_redis(settings.redis) as redis:
        await reset(settings, redis)
    assert await deleted()
