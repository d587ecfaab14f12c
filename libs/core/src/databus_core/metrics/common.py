"""Metrics that each service has."""

from collections.abc import Iterator
from importlib.metadata import version
from platform import python_version

from prometheus_client import CollectorRegistry, Counter, Gauge

from databus_core.errors import RetryableError

REGISTRY = CollectorRegistry()

READY = Gauge("databus_ready", "1 while /readyz answers 200", registry=REGISTRY)
LEADER = Gauge(
    "databus_leader",
    "1 while this process holds the lease of the active replica, and has renewed it in time",
    ["role"],
    registry=REGISTRY,
)
RETRIES = Counter(
    "databus_retries",
    "Times the work, or a part of it, was tried again after an error, by dependency and error class",
    ["dependency", "error"],
    registry=REGISTRY,
)
BUILD_INFO = Gauge("databus_build_info", "1, with the version in labels", ["version", "python"], registry=REGISTRY)
BUILD_INFO.labels(version("databus-core"), python_version()).set(1)


def _retryable(error: type[RetryableError]) -> Iterator[type[RetryableError]]:
    for each in error.__subclasses__():
        yield each
        yield from _retryable(each)


for _error in _retryable(RetryableError):
    RETRIES.labels(_error.dependency, _error.__name__)
