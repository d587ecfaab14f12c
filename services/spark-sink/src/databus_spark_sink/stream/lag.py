"""How far the lake is behind Kafka, as metrics."""

from databus_core.metrics import sink as metrics
from databus_spark_sink.stream.cuts import Batch


class Lag:
    """Follows the batches of a sink. What it was behind before its start is not known."""

    def __init__(self) -> None:
        metrics.FRESHNESS.begin()

    def found(self, batch: Batch | None) -> None:
        """Note what is to be written now."""
        metrics.LAG_RECORDS.set(batch.waiting if batch else 0)

    def written(self, batch: Batch | None, looked: float, *, is_behind: bool) -> None:
        """Note that the change log has a batch, which was searched for at a time, in seconds since the epoch.

        `is_behind`: there are mirrors that do not have it.
        """
        metrics.LAG_RECORDS.set(batch.waiting - batch.records if batch else 0)
        if (batch is None or batch.is_all) and not is_behind:
            metrics.FRESHNESS.complete(looked)
