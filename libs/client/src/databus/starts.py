"""Where a program begins that has no bookmark yet."""

from datetime import datetime
from typing import TypeAlias

from databus.bookmark import Bookmark, Join
from databus.gtid_start import find_start
from databus.lease import Lease
from databus.offsets import ends_of, offsets_at, require_kept
from databus.published import Published
from databus.published_up_to import wait_until_published
from databus.snapshot import beginning, choose
from databus.source import Source
from databus_binlog import Position
from databus_core.errors import DumpUnusable, InvalidSettings
from databus_core.kafka_ends import Offsets
from databus_core.kafka_progress import read_progress
from databus_core.progress import Progress

#: a text is one of `snapshot`, `latest`, `earliest` and `saved`, or `gtid:SET`
Start: TypeAlias = str | Position | datetime | Bookmark

_GTIDS = "gtid:"


async def bookmark_at(source: Source, start: Start, lease: Lease) -> Bookmark:
    """Return the bookmark of a start. With `snapshot` it may wait for a dump, of which it takes a lease.

    Raises InvalidSettings and ChangesLost.
    """
    if isinstance(start, Bookmark):
        return start.for_tables(source.settings.name, source.tables)
    if start != "snapshot":
        return await _without_dump(source, start)
    Published(source.settings).require_positions(source.tables)
    manifest, starts = await choose(source)
    try:
        await lease.take(source, manifest.id)
    except DumpUnusable:  # it has just been deleted
        manifest, starts = await choose(source)
        await lease.take(source, manifest.id)
    return await beginning(source, manifest, starts)


async def _without_dump(source: Source, start: str | Position | datetime) -> Bookmark:
    match start:
        case "latest":
            return await _latest(source)
        case "earliest":
            return await _whole(source, await source.topics.beginnings())
        case datetime():
            return await _at_time(source, start)
        case Position(file=file) if file:
            return await _after_position(source, start)
        case _ if gtid_set := _gtid_set_of(start):
            return await _after_gtids(source, gtid_set)
    raise InvalidSettings(
        "start: expected snapshot, latest, earliest, saved, gtid:SET, a Position, a datetime or a Bookmark"
    )


def _gtid_set_of(start: str | Position) -> str:
    if isinstance(start, Position):
        return start.gtid_set
    return start.removeprefix(_GTIDS) if start.startswith(_GTIDS) else ""


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
    ends = await ends_of(source)
    # A transaction may have been published while the ends were read: it is before the start in all topics, or in none.
    progress = await read_progress(source.settings, to_end=True) or Progress()
    return Bookmark(pipeline=source.settings.name, tables=list(source.tables), offsets=ends, after=progress.transaction)


async def _after_position(source: Source, start: Position) -> Bookmark:
    Published(source.settings).require_positions(source.tables)
    starts = await source.topics.beginnings()

    def missing(progress: Progress) -> str:
        reached = progress.position or Position()
        _require_one_log(progress, start)
        return "" if reached.file and reached.log_order >= start.log_order else f"up to {start.file}:{start.offset}"

    progress = await wait_until_published(source, missing)
    return await _whole(source, starts, Join(start, progress.transaction))


def _require_one_log(progress: Progress, start: Position) -> None:
    """Raise InvalidSettings if the position may be one of another log than the pipeline's changes."""
    until = max(progress.other_log_until, progress.reset.transaction if progress.reset else 0)
    if until:
        raise InvalidSettings(
            f"start: up to transaction {until} the pipeline has read another log (it failed over, or was reset), and a "
            "position does not say of which log it is: begin with start='gtid:…', a time or a snapshot"
        )
    file = progress.position.file if progress.position else ""
    if file and file.rpartition(".")[0] != start.file.rpartition(".")[0]:
        raise InvalidSettings(f"start: {start.file} is no file of the log that the pipeline reads, such as {file}")


async def _at_time(source: Source, start: datetime) -> Bookmark:
    if start.tzinfo is None:
        raise InvalidSettings("start: the time has no time zone: use datetime.now(UTC), or astimezone()")
    return await _whole(source, await offsets_at(source, int(start.timestamp() * 1000), await ends_of(source)))


async def _after_gtids(source: Source, gtid_set: str) -> Bookmark:
    ends = await ends_of(source)  # before the progress is read: what follows them is also after that progress
    start = await find_start(source, gtid_set)
    starts = await offsets_at(source, start.earliest_ms, ends)
    await require_kept(source, starts, ends, start.after, start.earliest_ms)
    return Bookmark(
        pipeline=source.settings.name,
        tables=list(source.tables),
        offsets=starts,
        after=start.after,
        executed=start.executed,
    )
