"""Reads rows of a binlog."""

import asyncio
import secrets
from collections.abc import Callable, Iterable

from common.connections import session_on
from databus_binlog import Event, EventStream, Position, Rows, TableMap, Value, Xid
from devstack import Server


async def read_rows(
    server: Server, start: Position, schema: str, describe: Callable[[TableMap], TableMap] | None = None
) -> list[tuple[TableMap, Rows]]:
    """Return the rows events of a schema, each with its table, from a position to the end of the log."""
    async with session_on(server) as session:
        stream = await session.dump(
            start,
            server_id=secrets.randbelow(2**31) + 1000,
            follow=False,
            wanted=lambda name, _: name == schema,
            describe=describe,
        )
        return [
            (events.tables[event.table], event)
            async for events in stream
            for event in events
            if isinstance(event, Rows)
        ]


def ids(events: Iterable[Event]) -> list[Value]:
    """Return the first value of each row image, in most tests the primary key."""
    return [image[0] for event in events if isinstance(event, Rows) for image in event.images()]


async def until(stream: EventStream, last: bytes) -> list[Event]:
    """Read events up to the first commit after the row whose first value is `last`; fail after 20 seconds."""
    seen: list[Event] = []
    async with asyncio.timeout(20):
        async for events in stream:
            for event in events:
                seen.append(event)
                if isinstance(event, Xid) and last in ids(seen):
                    return seen
    raise AssertionError("the stream has ended before the commit")
