"""Servers log the statements of tests/golden as the binlogs there, except for positions, ids and times."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from common.connections import printing, session_on
from databus_binlog import AnyEvent, FormatDescription, Heartbeat, Rotate, TableMap
from devstack import Server
from golden.binlogs import write
from golden.cases import events as kept

Logged = Iterable[tuple[AnyEvent, Mapping[str, TableMap]]]

_OWN_TO_A_LOG = dict.fromkeys(("file", "gtid"), "") | dict.fromkeys(("server_id", "start", "end", "commit_time_us"), 0)


async def test_servers_log_what_the_golden_files_are_made_of(own: Server):
    logged = []
    async with printing(own) as run, session_on(own) as session:
        await run("DROP DATABASE IF EXISTS shop")
        start = await session.current_position()
        await write(own.kind, run)
        stream = await session.dump(start, server_id=4733, follow=False, statements=True)
        async for events in stream:
            logged += [(event, events.tables) for event in events]
        await run("DROP DATABASE shop")
    assert list(plain(logged)) == list(plain(kept(own.kind)))


def plain(events: Logged) -> Iterator[tuple[AnyEvent, TableMap | None]]:
    """Leave out what differs in every log, and replace fingerprints by tables."""
    for event, tables in events:
        if isinstance(event, FormatDescription | Rotate | Heartbeat):
            continue
        table = getattr(event, "table", None)
        known = {name: value for name, value in _OWN_TO_A_LOG.items() if name in event.__struct_fields__}
        known |= {"xid": 0} if getattr(event, "xid", None) is not None else {}
        known |= {"table": ""} if table is not None else {}
        yield msgspec.structs.replace(event, **known), tables[table] if table is not None else None
