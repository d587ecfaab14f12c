"""The states of a dump as server-sent events, until it has ended."""

import asyncio
from collections.abc import AsyncIterator
from time import monotonic

from databus_core.errors import RetryableError
from databus_core.manifest import DumpEvent
from databus_dump_api.dumps import DumpManager
from databus_dump_api.problems import UnknownDump
from databus_dump_api.server_sent import encode

_PAUSE_SECONDS = 1.0
#: silence after which a comment is sent, so that no proxy closes the connection
_SILENCE_SECONDS = 15.0


async def events(dumps: DumpManager, dump: str) -> AsyncIterator[bytes]:
    """Yield an event `progress` whenever the state or the progress has changed, and finally an event `end`.

    The stream ends without the latter if the dump is deleted. While the storage is unavailable, there are no events.
    """
    event: DumpEvent | None
    last, sent = None, monotonic()
    while True:
        try:
            manifest = await dumps.with_progress(await dumps.get(dump))
            event = DumpEvent(manifest.id, manifest.state, manifest.progress, manifest.error)
        except UnknownDump:
            return
        except RetryableError:
            event = last
        if event and event != last:
            yield encode("end" if event.state.ended else "progress", event)
            last, sent = event, monotonic()
        elif monotonic() - sent > _SILENCE_SECONDS:
            yield b": waiting\n\n"
            sent = monotonic()
        if event and event.state.ended:
            return
        await asyncio.sleep(_PAUSE_SECONDS)
