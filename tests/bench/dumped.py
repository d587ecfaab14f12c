"""Writes table bench.t to files as dump-api does, without Kafka and HTTP. Each run is a new process."""

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path

from readers import Clock, Run, peak

from common.dump_output import Folder
from databus_changes.catalog import read_table
from databus_changes.snapshot.views import open_views
from databus_core.settings import Settings
from databus_core.source_connection import connect_source
from databus_dump_api.preparation import limits_of
from databus_dump_api.progress import Progress
from databus_dump_api.rows import write_tables
from databus_dump_api.table_copy import TableCopy
from databus_dump_api.tables import PublishedTable, publishing_rule, read_state


@dataclass(frozen=True)
class DumpTask:
    """The table's server, the format of the files, the number of connections, and the folder to fill."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    format: str
    connections: int
    folder: str


async def write(task: DumpTask, clock: Clock) -> int:
    """Write the files; return the number of their rows."""
    host = f"{task.host}:{task.port}"
    settings = Settings.model_validate(
        {
            "name": "bench",
            "source": {"hosts": [host], "user": task.user, "password": task.password, "include": ["bench.*"]},
            "dumps": {"formats": [task.format], "connections": task.connections},
        }
    )
    async with AsyncExitStack() as stack:
        catalog = await stack.enter_async_context(connect_source(settings.source))
        table = await read_table(catalog, "bench", "t")
        assert table
        stack.enter_context(clock)
        state = await read_state(catalog, table)
        rule = publishing_rule(settings, state.table)
        assert rule
        copy = TableCopy(settings.dumps, Folder(Path(task.folder)), state, PublishedTable(settings, rule, state.table))
        await copy.divide(catalog)
        views = await stack.enter_async_context(open_views(settings.source, host, task.connections))
        files = await write_tables([copy], views, catalog, limits_of(settings), Progress())
    return sum(file.rows for file in files)


def main() -> None:
    task, clock = DumpTask(**json.load(sys.stdin)), Clock()
    count = asyncio.run(write(task, clock))
    json.dump(asdict(Run(count, clock.wall, clock.cpu, peak())), sys.stdout)


if __name__ == "__main__":
    main()
