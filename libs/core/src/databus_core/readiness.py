"""Whether a database is set up for change data capture. Each fault is one line that names the setting."""

from databus_binlog import Server
from databus_core.errors import SourceNotReady
from databus_core.settings import Settings

#: variable, its required value, and for other values the fault and what to do
_REQUIRED = (
    ("log_bin", "ON", "the server writes no binlog: set log_bin and restart the server"),
    ("binlog_format", "ROW", "changes are not logged as rows: set binlog_format=ROW"),
    ("binlog_row_image", "FULL", "row images lack columns: set binlog_row_image=FULL"),
)


def faults(server: Server, *, partial: bool = False) -> list[str]:
    """List the faults of the server's settings. `partial` permits binlog_row_image=NOBLOB."""
    found = []
    for variable, required, advice in _REQUIRED:
        value = server.variables.get(variable, "missing")
        if partial and (variable, value.upper()) == ("binlog_row_image", "NOBLOB"):
            continue
        if {"1": "ON", "0": "OFF"}.get(value, value.upper()) != required:
            found.append(f"{variable} is {value}: {advice}")
    return found


def names_columns(server: Server) -> bool:
    """Return whether the server's binlog contains the names of columns."""
    return server.variables.get("binlog_row_metadata", "").upper() == "FULL"


def require_ready(server: Server, host: str, *, partial: bool = False) -> None:
    """Raise SourceNotReady with all faults (see `faults`), one a line, if there are any."""
    if found := faults(server, partial=partial):
        raise SourceNotReady("\n".join(f"database {host}: {fault}" for fault in found))


def require_named_columns(settings: Settings, server: Server, host: str) -> None:
    """Raise SourceNotReady if the delivery needs a binlog that names columns, and the server's does not."""
    if settings.publisher.delivery == "at_least_once" and not names_columns(server):
        raise SourceNotReady(
            f"database {host}: the binlog does not name columns, and with publisher.delivery=at_least_once "
            "the schema history may be ahead of rows that are read again: set binlog_row_metadata=FULL on the server"
        )
