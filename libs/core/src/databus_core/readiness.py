"""Whether a database is set up for change data capture. Each fault is one line that names the setting."""

from databus_binlog import Engine, EngineUnavailable, Server
from databus_binlog.engines import require_installed
from databus_binlog.session import Session
from databus_core.errors import InvalidSettings, SourceNotReady
from databus_core.settings import Settings

#: variable → its required value, and for other values what that means and what to do
REQUIRED = {
    "log_bin": ("ON", "the server writes no binlog: set log_bin and restart the server"),
    "binlog_format": ("ROW", "changes are not logged as rows: set binlog_format=ROW"),
    "binlog_row_image": ("FULL", "row images lack columns: set binlog_row_image=FULL"),
}


def fault_of(server: Server, variable: str, *, partial: bool = False) -> str:
    """Return what is wrong with one of the `REQUIRED` variables; "" if nothing is.

    `partial` permits binlog_row_image=NOBLOB.
    """
    required, advice = REQUIRED[variable]
    value = server.variables.get(variable, "missing")
    if partial and (variable, value.upper()) == ("binlog_row_image", "NOBLOB"):
        return ""
    right = {"1": "ON", "0": "OFF"}.get(value, value.upper()) == required
    return "" if right else f"{variable} is {value}: {advice}"


def names_columns(server: Server) -> bool:
    """Return whether the server's binlog contains the names of columns."""
    return server.variables.get("binlog_row_metadata", "").upper() == "FULL"


def require_ready(server: Server, host: str, *, partial: bool = False) -> None:
    """Raise SourceNotReady with all faults (see `fault_of`), one a line, if there are any."""
    if found := [fault for variable in REQUIRED if (fault := fault_of(server, variable, partial=partial))]:
        raise SourceNotReady("\n".join(f"database {host}: {fault}" for fault in found))


def require_named_columns(settings: Settings, server: Server, host: str) -> None:
    """Raise SourceNotReady if the delivery needs a binlog that names columns, and the server's does not."""
    if settings.publisher.delivery == "at_least_once" and not names_columns(server):
        raise SourceNotReady(
            f"database {host}: the binlog does not name columns, and with publisher.delivery=at_least_once "
            "the schema history may be ahead of rows that are read again: set binlog_row_metadata=FULL on the server"
        )


def require_engine(engine: Engine) -> None:
    """Raise InvalidSettings if `reader.engine` is not installed."""
    try:
        require_installed(engine)
    except EngineUnavailable as error:
        raise InvalidSettings(
            f"reader.engine: {engine} is not installed: pip install 'databus-reader[{engine}]', or set it to native"
        ) from error


async def require_engine_reads(session: Session, settings: Settings, host: str) -> None:
    """Raise SourceNotReady if the reader's engine cannot read a host; each line names one reason."""
    if faults := await session.engine_faults(settings.reader.engine, settings.source.captures):
        raise SourceNotReady("\n".join(f"database {host}: {fault}; or set reader.engine to native" for fault in faults))


async def require_readable(session: Session, settings: Settings, host: str) -> None:
    """Raise SourceNotReady if the reader or its engine cannot read a host; each line names one reason."""
    require_ready(session.server, host, partial=settings.publisher.publish_partial)
    await require_engine_reads(session, settings, host)
