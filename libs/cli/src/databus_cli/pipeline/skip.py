"""`databus pipeline skip`: let the reader continue after one transaction."""

import argparse
import time

from databus_cli.pipeline.transaction import Transaction, find
from databus_cli.positions import described
from databus_cli.terminal import confirmed, notice
from databus_core.errors import InvalidSettings, PipelineNotStarted
from databus_core.kafka_progress import read_progress
from databus_core.kafka_table_states import write_skip
from databus_core.pipeline_host import connect_pipeline_host
from databus_core.settings import Settings
from databus_core.skips import Skip


async def skip(settings: Settings, options: argparse.Namespace) -> int:
    """Show the transaction and what happens to it, ask for confirmation, and request that the reader skips it."""
    progress = await read_progress(settings)
    if progress is None or progress.position is None:
        raise PipelineNotStarted(f"pipeline {settings.name} has not begun: no transaction can be skipped")
    notice(f"pipeline {settings.name} has published everything before {described(progress.position)}")
    async with connect_pipeline_host(settings.source, progress) as (host, session):
        found = await find(settings, host, session, progress, options.transaction)
        request = Skip(
            gtid=found.gtid,
            server=session.server.identity,
            file=found.file,
            offset=found.offset,
            requested_us=time.time_ns() // 1000,
        )
    notice(
        f"transaction {request.transaction} begins at {found.file}:{found.offset} of {host} and has {contents(found)}"
    )
    if found.is_prepared:
        raise InvalidSettings("--transaction: it ends in XA PREPARE: skip the transaction of its XA COMMIT instead")
    notice(consequence(settings, found))
    if not (options.yes or confirmed(f"Skip transaction {request.transaction} of pipeline {settings.name}?")):
        notice("nothing was changed")
        return 1
    await write_skip(settings, request)
    notice("requested; the reader skips the transaction when it reads it, or when it is started")
    return 0


def contents(found: Transaction) -> str:
    """Describe the rows of a transaction."""
    if found.is_xa_commit:
        return "the rows of an earlier XA PREPARE"
    counts = [f"{count:,} row{'s' * (count != 1)} of {table}" for table, count in sorted(found.rows.items())]
    return ", ".join(counts) or "no captured rows"


def consequence(settings: Settings, found: Transaction) -> str:
    """Describe what happens to a transaction that is skipped."""
    heals = "loaded again" if settings.doubt.heal == "auto" else "wait for `databus backfill start TABLE --clean`"
    if not found.rows:
        return f"all captured tables that it may have changed are parked and {heals}"
    return f"its rows become dead letters; their tables, and others that it may have changed, are parked and {heals}"
