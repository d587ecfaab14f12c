"""Check that the configured engine is installed, and that it can read a host's binlog."""

from databus_binlog import Engine, EngineUnavailable
from databus_binlog.engines import require_installed
from databus_binlog.session import Session
from databus_core.errors import InvalidSettings, SourceNotReady
from databus_core.readiness import require_ready
from databus_core.settings import Settings


def require_engine(engine: Engine) -> None:
    """Raise InvalidSettings if `reader.engine` is not installed."""
    try:
        require_installed(engine)
    except EngineUnavailable as error:
        raise InvalidSettings(
            f"reader.engine: {engine} is not installed: pip install 'databus-reader[{engine}]', or set it to native"
        ) from error


async def require_readable(session: Session, settings: Settings, host: str) -> None:
    """Raise SourceNotReady if the reader or its engine cannot read a host; each line names one reason."""
    require_ready(session.server, host, partial=settings.publisher.publish_partial)
    if faults := await session.engine_faults(settings.reader.engine, settings.source.captures):
        raise SourceNotReady("\n".join(f"database {host}: {fault}; or set reader.engine to native" for fault in faults))
