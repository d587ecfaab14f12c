"""Outages of dependencies: each is logged once when it begins and once when it ends; retries only at level debug."""

import time
from collections.abc import Container

from databus_core.errors import RetryableError
from databus_core.log_events import Fields, LogEvent
from databus_core.logs import get_logger
from databus_core.metrics.common import RETRIES

log = get_logger(__name__)


class Outages:
    """The dependencies that this process cannot reach at present."""

    def __init__(self) -> None:
        #: (dependency, host) → when it was lost, on the monotonic clock
        self._since: dict[tuple[str, str], float] = {}

    def lost(self, error: RetryableError) -> None:
        """Log that a dependency is unavailable, at level debug if that was logged before."""
        RETRIES.labels(error.dependency, type(error).__name__).inc()
        key = error.dependency, error.host
        fields = error.fields | _fields(*key)
        if key in self._since:
            log.debug(LogEvent.DEPENDENCY_RETRIED, f"{error}; retrying", **fields)
        else:
            self._since[key] = time.monotonic()
            log.warning(LogEvent.DEPENDENCY_LOST, f"{error}; retrying", **fields)

    def back(self, *, among: Container[str] | None = None, host: str = "") -> None:
        """Log that dependencies are available again: those with a name in `among`, by default all.

        If a `host` is given, it is the only one of the source's hosts that is available again.
        """
        for key, since in list(self._since.items()):
            dependency, its_host = key
            if (among is not None and dependency not in among) or (host and its_host not in ("", host)):
                continue
            del self._since[key]
            seconds = round(time.monotonic() - since, 1)
            text = f"{' '.join(filter(None, key))} is available again after {seconds:g} s"
            log.info(LogEvent.DEPENDENCY_BACK, text, **(_fields(*key) | Fields(seconds=seconds)))


def _fields(dependency: str, host: str) -> Fields:
    return Fields(dependency=dependency, host=host) if host else Fields(dependency=dependency)
