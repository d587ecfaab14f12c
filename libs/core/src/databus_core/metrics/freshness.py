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


#: While Redis is away, which would know (`databus_core.election`), replicas may be active in turn, and none of them
#: gets anything done. A pause of a retry and the attempts of others are shorter than this. After it, the other has
#: worked.
_VALID_SECONDS = 300.0


class Freshness(Collector):
    """The time since the moment up to which a stage has everything.

    It is computed when it is exported. So it also grows while the stage hangs.
    """

    def __init__(self, stage: Stage, registry: CollectorRegistry) -> None:
        self._stage = stage
        #: the moment, in seconds since the epoch; None: it is not known
        self._complete: float | None = None
        #: since when another replica is active, in seconds since the epoch; None: this one is
        self._ended: float | None = 0.0
        registry.register(self)

    def begin(self) -> None:
        """Note that this replica is active now. A moment that is known remains valid for a while."""
        if self._complete is None or (self._ended is not None and time.time() > self._ended + _VALID_SECONDS):
            self._complete = time.time()
        self._ended = None

    def complete(self, moment: float) -> None:
        """Note that the stage has everything that happened until a moment, in seconds since the epoch."""
        self._complete, self._ended = moment, None

    def end(self) -> None:
        """Note that another replica is active."""
        if self._ended is None:
            self._ended = time.time()

    @property
    def seconds(self) -> float:
        """The freshness now; not a number while another replica is active."""
        if self._complete is None or self._ended is not None:
            return math.nan
        return max(0.0, time.time() - self._complete)

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Return the metric without a value."""
        yield _family()

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Return the metric, without a value if another replica is active."""
        family = _family()
        if self._ended is None:
            family.add_metric([self._stage], self.seconds)
        yield family


def _family() -> GaugeMetricFamily:
    return GaugeMetricFamily("databus_freshness_seconds", _MEANING, labels=["stage"])
