"""The publisher's main path: open → read → encode → produce → commit."""

import asyncio
import math
import time
from contextlib import nullcontext

import msgspec
from redis.asyncio import Redis

from databus_core.cancellation import raise_if_cancelled
from databus_core.checks import require, results
from databus_core.election import leading
from databus_core.errors import GenerationLost, RecordTooLarge
from databus_core.kafka_checks import PUBLISHER_CHECKS, kafka_results
from databus_core.kafka_history import read_history
from databus_core.kafka_progress import read_progress
from databus_core.kafka_table_states import read_states
from databus_core.log_events import LogEvent
from databus_core.logs import bound, get_logger, position_fields
from databus_core.metrics import publisher as metrics
from databus_core.pipe import Entry, PublisherEnd
from databus_core.pipeline_state import require_new
from databus_core.progress import Progress, Routes
from databus_core.redis_checks import redis_results
from databus_core.redis_connection import connect_redis
from databus_core.routes import fingerprint
from databus_core.runtime import Health, uninterrupted
from databus_core.settings import Settings
from databus_core.settings.topic_claims import TopicClaims, known_claims
from databus_core.tracing import open_spans
from databus_messages.format_check import FORMATS, check_formats
from databus_messages.routing.rule_check import RULES
from databus_publisher.marks import Marks
from databus_publisher.producer import Producer, open_producer
from databus_publisher.publication import Publication
from databus_publisher.topics import Topics, open_topics
from databus_publisher.tracing import TracedEnd, TracedPublication, make_pipe

log = get_logger(__name__)

_ENTRIES = 16
_BLOCK_MS = 500
#: a trim says how large the entries in the stream are; after this time, others may have arrived
_TRIMMED_SECONDS = 0.02


async def run(settings: Settings, health: Health, *, until_idle: bool = False) -> None:
    """Publish as the active publisher. A producer is kept from one generation of the pipe to the next.

    With `until_idle`, return when a reader has stopped at the end of the binlog and everything it sent is committed.
    """
    health.beat()
    spans = open_spans("publisher", settings.name)
    async with (
        connect_redis(settings.redis) as redis,
        leading(settings.publisher.election, settings.name, "publisher", redis, health, lambda: _reach(settings)),
        open_topics(settings) as topics,
    ):
        while True:
            try:
                async with open_producer(settings) as producer:
                    pipe = make_pipe(redis, settings.name, spans)
                    return await _serve(settings, health, redis, pipe, topics, producer, until_idle=until_idle)
            except RecordTooLarge as refused:  # aiokafka's producer cannot be used afterwards
                await topics.lower_limit(refused)


async def _reach(settings: Settings) -> None:
    """Reach Kafka, and what the formats need."""
    await read_progress(settings)
    await check_formats(settings)


async def _serve(
    settings: Settings,
    health: Health,
    redis: Redis,
    pipe: PublisherEnd,
    topics: Topics,
    producer: Producer,
    *,
    until_idle: bool,
) -> None:
    """Publish from the progress in Kafka, one generation after the other."""
    await check_formats(settings)  # before opening a generation, which ends the reader's current one
    progress = await read_progress(settings, to_end=True)
    if progress is None:
        await require_new(settings, redis)
        progress = Progress()
    progress = _by_rules(progress, fingerprint(settings.publisher.rules))
    claims = await _claim_topics(settings)
    while True:
        states, _ = await read_states(settings)
        parked = [table for table, doubt in states.doubts.items() if doubt.state == "parked"]
        arguments = settings, producer, topics, progress, claims, parked
        publication = TracedPublication(pipe, *arguments) if isinstance(pipe, TracedEnd) else Publication(*arguments)
        await _open(pipe, producer, progress)
        health.up()
        with bound(generation=pipe.generation):
            log.info(
                LogEvent.GENERATION_OPENED,
                "a generation is open, the reader can continue",
                transaction=progress.transaction,
                **position_fields(progress.position),
            )
            try:
                return await _publish(pipe, publication, health, patience=_patience(settings), until_idle=until_idle)
            except GenerationLost as lost:
                log.info(LogEvent.GENERATION_LOST, f"{lost}; opening a new generation")
        progress = await publication.abandon()


def _by_rules(progress: Progress, rules: str) -> Progress:
    """Return the progress of a publisher whose rules have this fingerprint."""
    was = progress.routes
    if was is None:  # it is new, or of a version that did not keep its rules
        return msgspec.structs.replace(progress, routes=Routes(rules))
    if was.fingerprint == rules:
        return progress
    routes = Routes(rules, progress.transaction, was.fingerprint, was.after)
    return msgspec.structs.replace(progress, routes=routes)


async def _open(pipe: PublisherEnd, producer: Producer, progress: Progress) -> None:
    """Open a generation at the progress."""
    await producer.recommit_progress(progress)
    await pipe.open(progress)
    metrics.GENERATIONS.inc()


async def _claim_topics(settings: Settings) -> TopicClaims:
    """Give the known tables their topics. Log those that have none."""
    tables = (await read_history(settings)).by_claim()
    for refused in known_claims(settings, tables, folded=True).refused.values():
        log.warning(LogEvent.TOPIC_REFUSED, refused.refusal, table=refused.table, topic=refused.topic)
    return known_claims(settings, tables)


def _patience(settings: Settings) -> float:
    """Return the seconds to wait for the rest of a source transaction: Kafka's transaction must not time out first."""
    return settings.publisher.transaction_timeout / 2 if settings.publisher.delivery == "exactly_once" else math.inf


async def _publish(
    pipe: PublisherEnd, publication: Publication, health: Health, *, patience: float, until_idle: bool
) -> None:
    """Publish the entries of the open generation. Raises GenerationLost.

    With `until_idle`, return when the reader has ended and everything is committed. When cancelled, finish the current
    entries, and commit unless a source transaction is open then.
    """
    last_entries, marks = time.monotonic(), Marks(pipe.published_to_us)
    taking = asyncio.create_task(_take(pipe))
    try:
        while True:
            health.beat()
            pipe.published_to_us = marks.update(pipe.read_to, publication.published)
            entries, drained = await _next_entries(publication, taking)
            if not drained:
                taking = asyncio.create_task(_take(pipe))  # Redis sends the next ones while these are published
            if entries:
                last_entries = time.monotonic()
                await uninterrupted(_publish_entries(pipe, publication, entries, drained))
            elif publication.in_transaction and time.monotonic() > last_entries + patience:
                raise GenerationLost(
                    f"no data for {patience:g} s inside an open transaction: check that the reader is running; if "
                    "transactions take longer, raise publisher.transaction_timeout"
                )
            elif drained and publication.committable and not publication.committing:
                await uninterrupted(_commit(pipe, publication, entries))
            if until_idle and drained and publication.ended:
                return
            if drained:
                taking = asyncio.create_task(_take(pipe))  # only now, to take all entries that arrived meanwhile
    except asyncio.CancelledError:
        await uninterrupted(publication.commit())
        raise
    finally:
        taking.cancel()
        await asyncio.gather(taking, return_exceptions=True)


async def _take(pipe: PublisherEnd) -> tuple[list[Entry], bool]:
    """Wait for entries and take them. Returns them, and whether the stream has no more."""
    return await pipe.take(count=_ENTRIES, block_ms=_BLOCK_MS), pipe.drained


async def _next_entries(
    publication: Publication, taking: "asyncio.Task[tuple[list[Entry], bool]]"
) -> tuple[list[Entry], bool]:
    """Wait for a `_take` to end, and return its result. Raises GenerationLost.

    If a commit ends before that, commit what was published meanwhile: nothing else may follow for a long time.
    """
    while committing := publication.committing:
        await asyncio.wait({taking, committing}, return_when=asyncio.FIRST_COMPLETED)
        if not committing.done():
            break
        await uninterrupted(publication.finish_commit())
        if publication.committable and not taking.done():
            await uninterrupted(publication.commit())
    try:
        taken = await taking
    except GenerationLost:
        # A reader that stops, or starts anew, relies on it that everything it has sent is published once it was taken.
        await uninterrupted(publication.commit())
        raise
    raise_if_cancelled()
    return taken


async def _publish_entries(pipe: PublisherEnd, publication: Publication, entries: list[Entry], drained: bool) -> None:
    """Publish entries, and trim them. Commit if there are no more, and no source transaction is open."""
    for entry in entries:
        await publication.add(entry.payload)
    if drained and publication.committable and not publication.committing:
        await _commit(pipe, publication, entries)
    else:
        await pipe.trim(entries)


async def _commit(pipe: PublisherEnd, publication: Publication, entries: list[Entry]) -> None:
    """Commit; meanwhile trim these entries, which are published. With `at_least_once`, trim them after the commit."""
    await publication.start_commit()
    trimmed = time.monotonic()
    try:
        await pipe.trim(entries)
    finally:
        await publication.finish_commit()
    if time.monotonic() > trimmed + _TRIMMED_SECONDS:
        await pipe.trim()  # the pipe learns how large the entries are that arrived meanwhile


async def check(settings: Settings, _: Health) -> None:
    """Check Redis and the lease, Kafka, formats with the services that they need, and the rules for known tables."""
    open_spans("publisher", settings.name)
    found = await redis_results(settings, "publisher")
    found += await kafka_results(settings, [*PUBLISHER_CHECKS, RULES])
    found += await results("publisher", nullcontext(settings), [FORMATS])
    require(found)
