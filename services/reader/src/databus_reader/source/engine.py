"""The engine that reads the binlog, and whether it can read a host's."""

from databus.errors import InvalidSettings, SourceNotReady
from databus.readiness import require_ready
from databus.settings import Settings
from databus_binlog import Engine, EngineUnavailable
from databus_binlog.engines import require_installed
from databus_binlog.session import Session


def require_engine(engine: Engine) -> None:
    """Raise InvalidSettings where `reader.engine` is not installed."""
    try:
        require_installed(engine)
    except EngineUnavailable as error:
        raise InvalidSettings(
            f"reader.engine: {engine} is not installed: pip install 'databus-reader[{engine}]', or set it to native"
        ) from error


async def require_readable(session: Session, settings: Settings, host: str) -> None:
    """Raise SourceNotReady with all that keeps the reader, or its engine, from reading a host, one a line."""
    require_ready(session.server, host)
    if faults := await session.engine_faults(settings.reader.engine, settings.source.captures):
        raise SourceNotReady("\n".join(f"database {host}: {fault}; or set reader.engine to native" for fault in faults))
