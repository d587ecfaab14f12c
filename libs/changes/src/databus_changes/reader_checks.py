"""Checks of a host of the database: what the reader needs, and what an operator should know about its binlog."""

from datetime import timedelta

from databus_binlog.errors import EngineUnavailable, MissingPrivilege
from databus_binlog.position import release
from databus_changes.captured import require_select
from databus_changes.cascades import cascades_warning, unlogged_children
from databus_changes.host_checks import CLIENT, TABLES, Host
from databus_core.checks import Check, Warned
from databus_core.errors import SourceNotReady, SourceRefused
from databus_core.events import first_names
from databus_core.readiness import REQUIRED, fault_of, names_columns, require_engine_reads, require_named_columns
from databus_core.source_log import read_lag, read_retention
from databus_core.source_verify import verify

#: a reader may be down for a weekend; with a shorter retention there is a warning
_SHORT = timedelta(days=3)


def _setting(variable: str) -> Check[Host]:
    async def check(host: Host) -> str:
        server = host.session.server
        if fault := fault_of(server, variable, partial=host.settings.publisher.publish_partial):
            raise SourceNotReady(f"database {host.address}: {fault}")
        return server.variables[variable]

    return Check(variable, check)


async def _metadata(host: Host) -> str:
    server = host.session.server
    if names_columns(server):
        return "FULL"
    require_named_columns(host.settings, server, host.address)
    await require_select(host.session, host.settings.source, await host.captured(), host.address)
    raise Warned(
        f"database {host.address}: binlog_row_metadata is not FULL: the schema history names the columns instead: set "
        "binlog_row_metadata=FULL"
    )


async def _engine(host: Host) -> str:
    engine = host.settings.reader.engine
    try:
        await require_engine_reads(host.session, host.settings, host.address)
    except EngineUnavailable:
        return f"{engine} is not installed here: what it cannot read is not known"
    return engine


async def _slave(host: Host) -> str:
    await host.session.register(host.settings.server_id)
    return "granted"


async def _server_id(host: Host) -> str:
    """Compare the reader's id with those of the server and of its replicas. The reader itself does not register."""
    mine, server = host.settings.server_id, host.session.server
    new_name = server.flavor == "mysql" and release(server.version) >= (8, 0, 22)
    try:
        replicas = await host.session.query("SHOW REPLICAS" if new_name else "SHOW SLAVE HOSTS")
    except MissingPrivilege:  # on MariaDB this needs REPLICATION MASTER ADMIN
        replicas = None
    if mine == server.server_id or any(int(replica[0]) == mine for replica in replicas or ()):
        raise SourceNotReady(
            f"database {host.address}: server_id {mine} is in use by another server: the database would disconnect one "
            "of both: set reader.server_id to another number"
        )
    return f"{mine} is free" if replicas is not None else f"{mine}; the account may not list replicas"


async def _gtids(host: Host) -> str:
    server = host.session.server
    if server.gtid:
        return "on"
    text = f"gtid_mode is {server.variables.get('gtid_mode', 'missing')}"
    if len(host.settings.source.hosts) > 1:
        raise Warned(
            f"database {host.address}: {text}: the reader cannot continue at another host: set gtid_mode=ON and "
            "enforce_gtid_consistency=ON"
        )
    return f"{text}: positions are files and offsets"


async def _retention(host: Host) -> str:
    """Compare how long the server keeps its binlog with how far the pipeline is behind."""
    seconds = await read_retention(host.session)
    if seconds is None:
        return "the server deletes no binlogs by itself"
    kept, retention = timedelta(seconds=seconds), str(timedelta(seconds=seconds)).removesuffix(", 0:00:00")
    if host.progress:
        lag = (await read_lag(host.session, host.progress)).seconds
        if lag is not None and lag > seconds / 2:
            raise Warned(
                f"database {host.address}: the pipeline is {timedelta(seconds=round(lag))} behind, and binlogs are "
                f"deleted after {retention}: raise binlog_expire_logs_seconds, and check reader and publisher"
            )
    if kept < _SHORT:
        raise Warned(
            f"database {host.address}: binlogs are deleted after {retention}: a reader that is stopped for longer "
            "has to start over: raise binlog_expire_logs_seconds"
        )
    return f"binlogs are kept for {retention}"


async def _position(host: Host) -> str:
    """Verify that the host has what the pipeline reads next. Other hosts than the one that it reads may be behind."""
    progress = host.progress
    if progress is None or progress.position is None:
        return "the pipeline has not begun"
    try:
        await verify(host.settings, host.address, host.session, progress, server_id=host.settings.command_server_id)
    except SourceRefused as error:
        if progress.server == host.session.server.identity or len(host.settings.source.hosts) == 1:
            raise
        raise Warned(f"{error}; the reader cannot use this host now") from error
    return "the host has all changes after it"


async def _keys(host: Host) -> str:
    if keyless := [table.full_name for table in await host.captured() if not table.row_key]:
        raise Warned(
            f"database {host.address}: tables without a primary key or a unique key of NOT NULL columns: "
            f"{first_names(keyless)}: consumers cannot identify their rows: add a key"
        )
    return "each captured table has one"


async def _cascades(host: Host) -> str:
    settings = host.settings
    heal = settings.doubt.cascades == "heal"
    if children := await unlogged_children(host.session, settings.source, heal=heal):
        raise Warned(cascades_warning(host.address, children))
    return "none changes captured rows without logging them"


READER_CHECKS = (
    *map(_setting, REQUIRED),
    Check("binlog_row_metadata", _metadata),
    Check("engine", _engine),
    CLIENT,
    Check("server_id", _server_id),  # before we register with it ourselves
    Check("REPLICATION SLAVE", _slave),
    Check("GTIDs", _gtids),
    Check("retention", _retention),
    Check("position", _position),
    *TABLES,
    Check("keys", _keys),
    Check("foreign keys", _cascades),
)
