"""The sections of `databus status`. They are read at the same time, and one that cannot be read hides no other."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from databus_binlog import Position
from databus_binlog.times import time_text
from databus_cli.deadletter.letters import open_letters
from databus_cli.status.tables import TableItem, line, tables_in_doubt, unfinished_backfills
from databus_core.errors import DatabusError
from databus_core.events import first_names
from databus_core.kafka_progress import read_progress
from databus_core.kafka_table_states import read_states
from databus_core.leases import ROLES, election_of, open_lease
from databus_core.pipe import read_backlog
from databus_core.pipeline_host import connect_pipeline_host
from databus_core.progress import Progress
from databus_core.redis_connection import connect_redis
from databus_core.settings import Settings
from databus_core.source_log import read_lag
from databus_core.switch import stored_host
from databus_core.table_states import TableStates

#: what a section shows, as JSON: values, of which None means that there is none, or a list
Values: TypeAlias = dict[str, object] | list[TableItem]


class Reads:
    """What several sections need, read once."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._progress = asyncio.ensure_future(read_progress(settings))
        self._states = asyncio.ensure_future(read_states(settings))

    async def progress(self) -> Progress:
        """Return how far the pipeline has published."""
        return await self._progress or Progress()

    async def states(self) -> TableStates:
        """Return the backfills and the tables in doubt."""
        states, _end = await self._states
        return states


async def read_sections(settings: Settings) -> dict[str, Values]:
    """Read all sections. One that cannot be read has only `error`."""
    reads = Reads(settings)
    found = await asyncio.gather(*(_read(section, reads) for section in SECTIONS.values()))
    return dict(zip(SECTIONS, found, strict=True))


async def _read(section: Callable[[Reads], Awaitable[Values]], reads: Reads) -> Values:
    try:
        return await section(reads)
    except DatabusError as error:
        return {"error": str(error)}


#: section → what is shown for a value that is None; in other sections it is left out
_MISSING = {"lag": "not known", "leaders": "nobody"}


def lines(settings: Settings, found: dict[str, Values]) -> list[str]:
    """Lay out sections: a headline for each, then its items or values, indented; a single value beside the headline."""
    shown = [f"pipeline {settings.name}"]
    for name, values in found.items():
        head = f"{name.replace('_', ' ')}:"
        inside = [line(each) for each in values] if isinstance(values, list) else _pairs(name, values)
        if not inside:
            shown.append(f"{head} none")
        elif len(inside) == 1 and isinstance(values, dict):
            shown.append(f"{head} {inside[0]}")
        else:
            shown += [head, *(f"  {each}" for each in inside)]
    return shown


def _pairs(section: str, values: dict[str, object]) -> list[str]:
    """Lay out the values that a section has; several of them stand below one another."""
    texts = {key.replace("_", " "): text for key, each in values.items() if (text := _text(section, key, each))}
    width = 13 if len(texts) > 1 else 0
    return [f"{key:<{width}} {text}" for key, text in texts.items()]


def _text(section: str, key: str, value: object) -> str:
    """Return a value for people. Only amounts are grouped by thousands: an offset has to be copied."""
    if value is None:
        return _MISSING.get(section, "")
    return f"{value:,}" if key.endswith("bytes") else str(value)


async def _lag(reads: Reads) -> Values:
    """Return how far the progress is behind the end of the binlog of the host that the pipeline reads."""
    progress = await reads.progress()
    async with connect_pipeline_host(reads.settings.source, progress) as (_, session):
        lag = await read_lag(session, progress)
    return {"seconds": None if lag.seconds is None else round(lag.seconds, 3), "bytes": lag.bytes}


async def _progress(reads: Reads) -> Values:
    """Return how far the pipeline has published or, if it has not begun, where it will begin."""
    progress = await reads.progress()
    position = progress.position or progress.start or Position()
    begins_at = None if progress.position else _beginning(reads.settings, progress)
    return {
        "begins_at": begins_at,
        "file": position.file or None,
        "offset": position.offset if position.file else None,
        "gtid_set": position.gtid_set or None,
        "transaction": progress.transaction,
        "time": time_text(progress.time_us) if progress.time_us else None,
        "server": progress.server or None,
    }


def _beginning(settings: Settings, progress: Progress) -> str:
    if progress.start is None:
        return str(settings.reader.start)
    return "this position, with a snapshot" if progress.snapshot else "this position"


async def _source(reads: Reads) -> Values:
    """Return the host that the reader reads, or read last."""
    async with connect_redis(reads.settings.redis) as redis:
        return {"host": await stored_host(redis, reads.settings.name)}


async def _leaders(reads: Reads) -> Values:
    """Return the process that holds the lease of each role. A lease in Kubernetes may have expired."""
    settings, found = reads.settings, {}
    async with connect_redis(settings.redis) as redis:
        for role in ROLES:
            async with open_lease(election_of(settings, role), settings.name, role, redis) as lease:
                found[str(role)] = await lease.holder()
    return {**found}


async def _stream(reads: Reads) -> Values:
    """Return the bytes in the Redis stream that are not published yet."""
    async with connect_redis(reads.settings.redis) as redis:
        return {"backlog_bytes": await read_backlog(redis, reads.settings.name)}


async def _skips(reads: Reads) -> Values:
    """Return the transactions that the reader will skip, by GTID or position."""
    return {"transactions": ", ".join((await reads.states()).skips) or None}


async def _in_doubt(reads: Reads) -> Values:
    return tables_in_doubt(await reads.states())


async def _backfills(reads: Reads) -> Values:
    return unfinished_backfills(await reads.states())


async def _dead_letters(reads: Reads) -> Values:
    """Return the dead letters that were not replayed: how many, since when, and of which tables."""
    async with open_letters(reads.settings) as letters:
        found = await letters.pending()
    tables = Counter(letter.about.table_name for letter in found)
    return {
        "count": len(found),
        "oldest": min((letter.time for letter in found), default=None),
        "tables": first_names([f"{table} ({count})" for table, count in sorted(tables.items())]) or None,
    }


#: name of each section, in the order in which they are shown
SECTIONS: dict[str, Callable[[Reads], Awaitable[Values]]] = {
    "lag": _lag,
    "progress": _progress,
    "source": _source,
    "leaders": _leaders,
    "stream": _stream,
    "skips": _skips,
    "tables_in_doubt": _in_doubt,
    "backfills": _backfills,
    "dead_letters": _dead_letters,
}
