"""How old the data behind a stage is."""

import math
import time
from collections.abc import Iterable
from typing import Literal, TypeAlias

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

Stage: TypeAlias = Literal["reader", "publisher", "sink"]

_MEANING = (
    "Everything that happened this many seconds ago has passed the stage: `reader` (from the database into Redis), "
    "`publisher` (from the database into Kafka), `sink` (from Kafka into the lake)"
)


class Freshness(Collector):
    """The time since the moment up to which a stage has everything.

    It is computed when it is exported. So it also grows while the stage hangs.
    """

    def __init__(self, stage: Stage, registry: CollectorRegistry) -> None:
        self._stage = stage
        #: the moment, in seconds since the epoch; None while another replica is active
        self._complete: float | None = None
        registry.register(self)

    def begin(self) -> None:
        """Note that this replica is active now. A moment that is known remains valid."""
        if self._complete is None:
            self._complete = time.time()

    def complete(self, moment: float) -> None:
        """Note that the stage has everything that happened until a moment, in seconds since the epoch."""
        self._complete = moment

    def end(self) -> None:
        """Note that another replica is active."""
        self._complete = None

    @property
    def seconds(self) -> float:
        """The freshness now; not a number while another replica is active."""
        return math.nan if self._complete is None else max(0.0, time.time() - self._complete)

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Return the metric without a value."""
        yield _family()

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Return the metric, without a value if another replica is active."""
        family = _family()
        if self._complete is not None:
            family.add_metric([self._stage], self.seconds)
        yield family


def _family() -> GaugeMetricFamily:
    return GaugeMetricFamily("databus_freshness_seconds", _MEANING, labels=["stage"])
