"""Where a program begins that has no bookmark yet."""

from datetime import datetime
from typing import Literal, TypeAlias

from databus.bookmark import Bookmark, Join
from databus.published import Published
from databus.snapshot import beginning, choose
from databus.source import Source
from databus_binlog import Position
from databus_core import kafka_client
from databus_core.errors import InvalidSettings
from databus_core.kafka_ends import Offsets, by_topic, stable_ends
from databus_core.kafka_progress import read_progress
from databus_core.progress import Progress

Start: TypeAlias = Literal["snapshot", "latest", "earliest", "saved"] | Position | datetime | Bookmark


async def bookmark_at(source: Source, start: Start) -> Bookmark:
    """Return the bookmark of a start. With `snapshot` it may wait for a dump. Raises InvalidSettings."""
    match start:
        case Bookmark():
            return start.for_tables(source.settings.name, source.tables)
        case "snapshot":
            Published(source.settings).require_positions(source.tables)
            manifest, starts = await choose(source)
            async with source.api.leased(manifest.id):
                return await beginning(source, manifest, starts)
        case "latest":
            return await _latest(source)
        case "earliest":
            return await _whole(source, await source.topics.beginnings())
        case datetime():
            return await _at_time(source, start)
        case Position(file=file) if file:
            Published(source.settings).require_positions(source.tables)
            starts = await source.topics.beginnings()
            progress = await read_progress(source.settings) or Progress()
            return await _whole(source, starts, Join(start, progress.transaction))
        case Position():
            raise InvalidSettings(
                "start: the records have no GTIDs: give file and offset of the position in the log of the server that "
                "the pipeline reads"
            )
    raise InvalidSettings("start: expected snapshot, latest, earliest, saved, a Position, a datetime or a Bookmark")


async def _whole(source: Source, starts: Offsets, join: Join | None = None) -> Bookmark:
    """Return a bookmark at these offsets. A reset of the pipeline, or other rules, before now are no reason to stop."""
    progress = await read_progress(source.settings) or Progress()
    return Bookmark(
        pipeline=source.settings.name,
        tables=list(source.tables),
        offsets=starts,
        unbroken_after=progress.unbroken_after,
        join=join,
    )


async def _latest(source: Source) -> Bookmark:
    """Begin after the last transaction that was published before this call returns."""
    ends = await _ends(source)
    # A transaction may have been published while the ends were read: it is before the start in all topics, or in none.
    progress = await read_progress(source.settings, to_end=True) or Progress()
    return Bookmark(pipeline=source.settings.name, tables=list(source.tables), offsets=ends, after=progress.transaction)


async def _at_time(source: Source, time: datetime) -> Bookmark:
    if time.tzinfo is None:
        raise InvalidSettings("start: the time has no time zone: use datetime.now(UTC), or astimezone()")
    time_ms = int(time.timestamp() * 1000)
    partitions = await source.topics.partitions()
    ends = await _ends(source)
    async with kafka_client.consumer(source.settings.kafka) as consumer:
        found = await consumer.offsets_for_times(dict.fromkeys(partitions, time_ms))
    starts = {each: found[each].offset for each in partitions if found.get(each)}
    return await _whole(source, _merged(ends, by_topic(starts)))


def _merged(offsets: Offsets, others: Offsets) -> Offsets:
    return {topic: offsets.get(topic, {}) | others.get(topic, {}) for topic in offsets | others}


async def _ends(source: Source) -> Offsets:
    kafka = source.settings.kafka
    async with (
        kafka_client.consumer(kafka, "read_uncommitted") as written,
        kafka_client.consumer(kafka) as committed,
    ):
        timeout = source.settings.publisher.transaction_timeout
        return by_topic(await stable_ends(timeout, written, committed, await source.topics.partitions()))
