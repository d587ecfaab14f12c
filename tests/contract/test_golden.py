"""Servers still log the statements of tests/golden as in the binlogs there, except for positions, ids and times."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from common.connections import printing, session_on
from databus_binlog import AnyEvent, FormatDescription, Heartbeat, Rotate, TableMap
from devstack import Server
from golden.binlogs import write
from golden.cases import events as golden_events

Logged = Iterable[tuple[AnyEvent, Mapping[str, TableMap]]]

#: fields that differ in every log, and what replaces them
_DIFFERING = {"file": "", "gtid": "", "server_id": 0, "start": 0, "end": 0, "commit_time_us": 0, "table_id": 0}


async def test_servers_log_the_events_of_the_golden_binlogs(own: Server):
    logged = []
    async with printing(own) as run, session_on(own) as session:
        await run("DROP DATABASE IF EXISTS shop")
        start = await session.current_position()
        await write(own.kind, run)
        stream = await session.dump(start, server_id=4733, follow=False, statements=True)
        async for events in stream:
            logged += [(event, events.tables) for event in events]
        await run("DROP DATABASE shop")
    assert list(comparable(logged)) == list(comparable(golden_events(own.kind)))


def comparable(events: Logged) -> Iterator[tuple[AnyEvent, TableMap | None]]:
    """Leave out what differs in every log, and return each event with its table instead of the table's fingerprint."""
    for event, tables in events:
        if isinstance(event, FormatDescription | Rotate | Heartbeat):
            continue
        table = getattr(event, "table", None)
        constants = {name: value for name, value in _DIFFERING.items() if name in event.__struct_fields__}
        constants |= {"xid": 0} if getattr(event, "xid", None) is not None else {}
        constants |= {"table": ""} if table is not None else {}
        yield msgspec.structs.replace(event, **constants), tables[table] if table is not None else None
