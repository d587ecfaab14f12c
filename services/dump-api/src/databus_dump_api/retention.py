"""Which dumps are deleted without a request: those that newer ones replace, unless they are young or leased."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from databus_core.manifest import Manifest, State
from databus_core.settings import Dumps
from databus_dump_api.dumps import DumpManager
from databus_dump_api.problems import InUse, UnknownDump

#: seconds between two looks
_PAUSE_SECONDS = 30.0


async def delete_expired(dumps: DumpManager, settings: Dumps) -> None:
    """Delete expired dumps, forever. Raises the errors of `DumpManager.delete`."""
    while True:
        for manifest in expired(await dumps.newest_first(), settings, datetime.now(UTC)):
            with suppress(InUse, UnknownDump):  # a client reads it, or has deleted it
                await dumps.delete(manifest.id)
        await asyncio.sleep(_PAUSE_SECONDS)


def expired(newest_first: Sequence[Manifest], settings: Dumps, now: datetime) -> list[Manifest]:
    """Return the ended dumps that `keep` newer ones replace and that are older than `keep_for`, the oldest first.

    The newest complete dump of all tables never expires, even if dumps of the same tables by their names replace it.
    """
    ended = [manifest for manifest in newest_first if manifest.state.ended]
    complete = (manifest for manifest in ended if manifest.state is State.COMPLETE and manifest.requested is None)
    newest_full = next(complete, None)
    young = now - timedelta(seconds=settings.keep_for)
    return [
        manifest
        for index, manifest in reversed(list(enumerate(ended)))
        if manifest is not newest_full
        and (manifest.completed or manifest.created) <= young
        and sum(_replaces(newer, manifest) for newer in ended[:index]) >= settings.keep
    ]


def _replaces(newer: Manifest, older: Manifest) -> bool:
    """Return whether a dump is of the same tables as an older one, and if that is complete, complete and as usable."""
    if older.state is State.COMPLETE and (newer.state is not State.COMPLETE or newer.mode is not older.mode):
        return False  # not every consumer can read chunked dumps
    return newer.requested == older.requested or _table_names(newer) == _table_names(older)


def _table_names(manifest: Manifest) -> set[tuple[str, str]]:
    return {(table.schema, table.name) for table in manifest.tables}
