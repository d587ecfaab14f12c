"""What a service answers to `GET /metrics`."""

from collections.abc import Iterable
from typing import Literal, TypeAlias

from prometheus_client import REGISTRY, CollectorRegistry, Metric, generate_latest
from prometheus_client.registry import Collector

from databus_core.metrics import common, dumps, publisher, reader, sink

Service: TypeAlias = Literal["reader", "publisher", "dump-api", "spark-sink"]

SERVICES: dict[Service, CollectorRegistry] = {
    "reader": reader.REGISTRY,
    "publisher": publisher.REGISTRY,
    "dump-api": dumps.REGISTRY,
    "spark-sink": sink.REGISTRY,
}


class _Exposition(Collector):
    """All metrics of a service, each with the label `pipeline`."""

    def __init__(self, service: Service, pipeline: str, *, is_standby: bool) -> None:
        self._service = SERVICES[service]
        self._label = {"pipeline": pipeline}
        self._is_standby = is_standby

    def collect(self) -> Iterable[Metric]:
        for registry in (REGISTRY, common.REGISTRY, self._service):
            for family in registry.collect():
                if self._is_standby and registry is self._service and family.type == "gauge":
                    continue
                family.samples = [each._replace(labels=self._label | each.labels) for each in family.samples]
                yield family


def exposition(service: Service, pipeline: str, *, is_standby: bool) -> bytes:
    """Return the metrics of a service in Prometheus' text format.

    A standby has no gauges of its service: they would tell how things were when it was active.
    """
    if service in ("reader", "publisher"):
        common.LEADER.labels(service)  # it holds no lease before it has tried to get one
    return generate_latest(_Exposition(service, pipeline, is_standby=is_standby))
