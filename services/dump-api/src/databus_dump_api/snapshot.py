"""Take one dump as of one position: places in Kafka → host → definitions → views with their position → rows.

The views are opened after Kafka's end offsets were read. They contain everything that was in the binlog when they were
opened. So every change is in the dump, or in Kafka from these offsets on, or in both; consumers drop the changes that
are in both, by comparing positions. Any error fails the dump.
"""

from datetime import UTC, datetime

from msgspec.structs import replace

from databus_changes.snapshot.views import open_views
from databus_core.manifest import FileFormat, Manifest, State
from databus_core.settings import Settings
from databus_dump_api.preparation import begin, limits_of, open_tables, require_all
from databus_dump_api.progress import Progress
from databus_dump_api.records import write_records
from databus_dump_api.rows import write_tables
from databus_dump_api.store import Output


async def take(settings: Settings, manifest: Manifest, output: Output, counted: Progress) -> Manifest:
    """Write all files of a dump to `output`, count its rows, and return its complete manifest."""
    begun, progress = await begin(settings, manifest)
    async with open_tables(settings, begun, progress, output) as found:
        for copy in found.copies:
            await copy.divide(found.catalog)
        counted.begin(found.estimated_rows)
        server = found.catalog.server.identity
        async with open_views(settings.source, found.host, settings.dumps.connections, server=server) as views:
            await require_all(settings, replace(begun, tables=found.published), found.catalog)
            files = await write_tables(found.copies, views, found.catalog, limits_of(settings), counted)
    complete = replace(
        begun,
        state=State.COMPLETE,
        formats=tuple(each for each in FileFormat if each in settings.dumps.formats),
        completed=datetime.now(UTC),
        source=found.source,
        position=views[0].position,
        tables=found.published,
        files=tuple(files),
    )
    return replace(complete, files=(*files, *await write_records(settings, complete, output)))
