"""Token buckets: how many requests each client may send."""

from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

#: seconds without requests after which a client may send a burst: the requests of as many seconds at once
_BURST_SECONDS = 2.0
#: limit of the clients that are remembered; of more, those that were silent for longest are forgotten
_MAX_CLIENTS = 10_000


class TokenBuckets:
    """A bucket for each client, which gets `rate` tokens a second."""

    def __init__(self, rate: float, clock: Callable[[], float] = monotonic) -> None:
        self._rate = rate
        self._clock = clock
        #: of each client, the one that was silent for longest first: its tokens, and when they were counted
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str) -> float:
        """Take a token and return 0; if there is none, return the seconds until the next one."""
        now, full = self._clock(), self._rate * _BURST_SECONDS
        tokens, counted = self._buckets.pop(client, (full, now))
        tokens = min(full, tokens + (now - counted) * self._rate)
        missing = max(0.0, 1 - tokens)
        self._buckets[client] = (tokens if missing else tokens - 1, now)
        if len(self._buckets) > _MAX_CLIENTS:
            self._buckets.popitem(last=False)
        return missing / self._rate
