"""`databus pipeline show`: the state of a pipeline, in sections that are read one by one."""

import argparse
import sys
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import msgspec
from redis.asyncio import Redis

from databus_binlog import Position
from databus_binlog.times import time_text
from databus_cli.pipeline.tables import TableItem, line, tables_in_doubt, unfinished_backfills
from databus_core.errors import DatabusError
from databus_core.kafka_progress import read_progress
from databus_core.kafka_table_states import read_states
from databus_core.leases import Role, open_lease
from databus_core.pipe import read_backlog
from databus_core.progress import Progress
from databus_core.redis_connection import connect_redis, redis_errors
from databus_core.settings import Election, Settings
from databus_core.switch import stored_host

#: what a section shows, as JSON: values, of which None means that there is none, or a list
Values: TypeAlias = dict[str, object] | list[TableItem]
Section: TypeAlias = Callable[[Settings, Redis], Awaitable[Values]]


async def show(settings: Settings, options: argparse.Namespace) -> int:
    """Print all sections. One that cannot be read shows its error; the exit code is 1 then."""
    found: dict[str, Values] = {}
    async with connect_redis(settings.redis) as redis:
        for name, section in SECTIONS.items():
            try:
                with redis_errors():
                    found[name] = await section(settings, redis)
            except DatabusError as error:
                found[name] = {"error": str(error)}
    if options.json:
        sys.stdout.buffer.write(msgspec.json.encode({"pipeline": settings.name, **found}) + b"\n")
    else:
        sys.stdout.write("\n".join([f"pipeline {settings.name}", *_lines(found)]) + "\n")
    return 1 if any("error" in values for values in found.values()) else 0


def _lines(found: dict[str, Values]) -> list[str]:
    """Lay out sections: a headline for each, then its values or items, indented."""
    lines = []
    for name, values in found.items():
        lines.append(f"{name.replace('_', ' ')}:{'' if values else ' none'}")
        if isinstance(values, list):
            lines += [f"  {line(each)}" for each in values]
        else:
            lines += [f"  {key.replace('_', ' '):<14}{'-' if each is None else each}" for key, each in values.items()]
    return lines


async def _progress(settings: Settings, _: Redis) -> Values:
    """Return how far the pipeline has published or, if it has not begun, where it will begin."""
    progress = await read_progress(settings) or Progress()
    position = progress.position or progress.start or Position()
    begins_at = None if progress.position else _beginning(settings, progress)
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


async def _source(settings: Settings, redis: Redis) -> Values:
    """Return the host that the reader reads, or read last."""
    return {"host": await stored_host(redis, settings.name)}


async def _leaders(settings: Settings, redis: Redis) -> Values:
    """Return the process that holds the lease of each role. A lease in Kubernetes may have expired."""
    elections: dict[Role, Election] = {"reader": settings.reader.election, "publisher": settings.publisher.election}
    found: dict[str, object] = {}
    for role, election in elections.items():
        async with open_lease(election, settings.name, role, redis) as lease:
            found[role] = await lease.holder()
    return found


async def _stream(settings: Settings, redis: Redis) -> Values:
    """Return the bytes in the Redis stream that are not published yet."""
    return {"backlog_bytes": await read_backlog(redis, settings.name)}


async def _skips(settings: Settings, _: Redis) -> Values:
    """Return the transactions that the reader will skip, by GTID or position."""
    states, _end = await read_states(settings)
    return {"transactions": ", ".join(states.skips) or None}


#: name of each section, in the order in which they are shown
SECTIONS: dict[str, Section] = {
    "progress": _progress,
    "source": _source,
    "leaders": _leaders,
    "stream": _stream,
    "skips": _skips,
    "tables_in_doubt": tables_in_doubt,
    "backfills": unfinished_backfills,
}
