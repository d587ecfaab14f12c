"""The state of a pipeline in Kafka and Redis: where it resumes, how a lost progress is noticed, and how it is reset.

Progress, schema history and table states are in Kafka. Redis holds nothing that must not be lost. A pipeline has
published before if its schema history has a head record, if its topics have records, or if Redis has the reader's host.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext

import msgspec
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from redis.asyncio import Redis

from databus_core import kafka_client, names
from databus_core.dead_letters import parked_id
from databus_core.errors import FatalError, ProgressCorrupt
from databus_core.kafka_compacted import read_latest
from databus_core.kafka_history import read_history_records
from databus_core.kafka_progress import read_progress
from databus_core.kafka_topics import ensure_compacted, partition_counts, partitions_of
from databus_core.leases import DURATION, ROLES, LeaderLease, election_of, open_lease
from databus_core.progress import Progress, Reset, encode_progress
from databus_core.settings import Settings
from databus_core.switch import stored_host
from databus_core.table_states import read_doubt

_PAUSE_SECONDS = 0.2


async def ensure_state_topics(admin: AIOKafkaAdminClient, settings: Settings, *, validate_only: bool = False) -> None:
    """Create or verify the topics of the pipeline's state, as `ensure_compacted` does. Raises FatalError."""
    factor = settings.publisher.replication_factor
    for name in (names.progress_topic, names.schema_topic, names.table_states_topic):
        await ensure_compacted(admin, name(settings.name), factor, validate_only=validate_only)


async def require_new(settings: Settings, redis: Redis) -> None:
    """Raise ProgressCorrupt if a pipeline without progress has published before.

    To begin anew would silently leave out the changes between the lost progress and `reader.start`.
    """
    if traces := await _traces(settings, redis):
        raise ProgressCorrupt(
            f"topic {names.progress_topic(settings.name)} has no progress, but pipeline {settings.name} is not new: "
            f"{'; '.join(traces)}. Restore the topic; or run `databus pipeline reset --to POSITION` to continue there, "
            "and take a new dump if this position leaves out changes"
        )


async def _traces(settings: Settings, redis: Redis) -> list[str]:
    """List what shows that the pipeline has published: none of it exists before the first commit of a progress.

    Exception: with `at_least_once` the schema history is written before the first progress, its head record last.
    """
    found = []
    if names.schema_key() in await read_history_records(settings):
        found.append(f"topic {names.schema_topic(settings.name)} has its schema history")
    async with kafka_client.admin(settings.kafka) as admin:
        pattern = re.compile(_own_topics(settings))
        own = await partitions_of(admin, lambda topic: bool(pattern.fullmatch(topic)))
    async with kafka_client.consumer(settings.kafka) as reading:
        ends = await reading.end_offsets(own) if own else {}
    if topics := sorted({each.topic for each, end in ends.items() if end}):
        found.append(f"topics with records: {len(topics)}, such as {topics[0]}")
    if host := await stored_host(redis, settings.name):
        found.append(f"Redis has {host} as the host that it reads")
    return found


def _own_topics(settings: Settings) -> str:
    """Return a regular expression of the topics that only this pipeline writes: their names contain its name."""
    templates = [(rule.topic, rule.escape_names) for rule in settings.publisher.rules if "{name}" in rule.topic]
    topics = [re.escape(names.dead_letter_topic(settings.name))]
    if templates:
        topics.append(names.table_topics(templates, settings.name, settings.source.include))
    return "|".join(topics)


async def reset(settings: Settings, redis: Redis, start: Progress | None = None) -> None:
    """Make the pipeline begin again, at the position of `start` or, without it, at `reader.start`.

    It is one Kafka transaction, if `delivery` is `exactly_once`.

    Only its progress, its schema history, its table states with the dead letters of parked tables, and its keys in
    Redis are reset; records and other dead letters stay. The reset takes a transaction ordinal that is greater than all
    before, also if the progress was lost or is an older copy: the time in µs since the epoch.
    Raises FatalError if a reader or publisher is active.
    """
    async with services_stopped(settings, redis):
        async with kafka_client.admin(settings.kafka) as admin:
            await ensure_state_topics(admin, settings)
            has_letters = names.dead_letter_topic(settings.name) in await partition_counts(admin)
        exactly_once = settings.publisher.delivery == "exactly_once"
        identity = names.transactional_id(settings.name) if exactly_once else None
        async with (
            kafka_client.producer(settings.kafka, identity) as producer,
            producer.transaction() if exactly_once else nullcontext(),
        ):
            await _write_reset(settings, producer, start or Progress(), has_letters=has_letters)
        keys = (names.generation_key, names.stream_key, names.host_key, names.switch_key)
        await redis.delete(*(key(settings.name) for key in keys))


async def _write_reset(settings: Settings, producer: AIOKafkaProducer, start: Progress, *, has_letters: bool) -> None:
    """Delete the schema history, and the table states with their dead letters; then write a progress without position.

    `has_letters`: whether the topic of dead letters exists; it is not created.
    """
    history, states = names.schema_topic(settings.name), names.table_states_topic(settings.name)
    deleted = [(topic, key) for topic in (history, states) for key in (await read_latest(settings.kafka, topic))[0]]
    if has_letters:
        letters = names.dead_letter_topic(settings.name)
        deleted += [(letters, letter) for topic, key in deleted if topic == states and (letter := _letter_of(key))]
    await asyncio.gather(*[await producer.send(topic, None, key, partition=0) for topic, key in deleted])
    published = await _published(settings)
    transaction = max(time.time_ns() // 1000, published.transaction + 1 if published else 0)
    begin = Progress(
        transaction=transaction,
        server=start.server,
        in_order=start.in_order,
        start=start.position,
        snapshot=start.snapshot,
        reset=Reset(transaction, start.snapshot),
        routes=published.routes if published else None,
    )
    record = encode_progress(begin)
    await producer.send_and_wait(names.progress_topic(settings.name), record, settings.name.encode(), partition=0)


async def _published(settings: Settings) -> Progress | None:
    """Return the progress; None if there is none, or it cannot be read."""
    try:
        return await read_progress(settings)
    except ProgressCorrupt:
        return None


def _letter_of(state: bytes) -> bytes | None:
    """Return the key of the dead letter of a table in doubt, given the key of its state; None for any other state."""
    try:
        found = read_doubt(state, None)
    except (msgspec.DecodeError, UnicodeDecodeError):  # a reset is also for states that are damaged
        return None
    return parked_id(*found[:2]) if found else None


@asynccontextmanager
async def services_stopped(settings: Settings, redis: Redis) -> AsyncIterator[None]:
    """Hold the leases of reader and publisher during the block. Raises FatalError if another process holds one."""
    async with AsyncExitStack() as held:
        for role in ROLES:
            election = election_of(settings, role)
            lease = await held.enter_async_context(open_lease(election, settings.name, role, redis))
            holder = await _take(lease, DURATION * election.renew)
            if holder != lease.me:
                raise FatalError(f"{holder} is the active {role}: stop reader and publisher first")
            held.push_async_callback(lease.release)
        yield


async def _take(lease: LeaderLease, seconds: float) -> str:
    """Acquire a lease, which a process that was killed may still hold for `seconds`. Returns the holder."""
    deadline = time.monotonic() + seconds
    while True:
        holder = await lease.take()
        if holder == lease.me or time.monotonic() > deadline:
            return holder
        await asyncio.sleep(_PAUSE_SECONDS)
