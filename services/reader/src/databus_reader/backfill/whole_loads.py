"""Ends loads of whole tables that take longer than Kafka allows for a transaction, so that they do not start again.

The rows of a table without a usable key are one transaction. Kafka aborts it after `publisher.transaction_timeout`, and
the publisher gives it up if nothing comes for half of this time.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator

from databus_binlog.row_batch import RowBatch
from databus_core.errors import GenerationLost
from databus_core.settings import Settings
from databus_core.table_states import Backfill

#: the part of the time in which the reader has to send the rows; in the rest, the publisher sends the last ones
_SHARE = 0.9


class WholeLoads:
    """Knows which loads took too long. It is used by one generation after the other."""

    def __init__(self, settings: Settings) -> None:
        publisher = settings.publisher
        self._timeout = publisher.transaction_timeout if publisher.delivery == "exactly_once" else math.inf
        #: ids of backfills
        self._too_long: set[str] = set()

    def refusal(self, backfill: Backfill) -> str:
        """Return why a backfill must not be tried again; empty if it may."""
        if backfill.id not in self._too_long:
            return ""
        return (
            f"the table has no usable key, and to load it as a whole took longer than publisher.transaction_timeout="
            f"{self._timeout:g}s: unless the publisher or Kafka was away, raise it and the brokers' "
            "transaction.max.timeout.ms, or add a primary key; then run "
            f"`databus backfill start {backfill.full_name}{' --clean' if backfill.clean else ''}`"
        )

    async def within_time(self, backfill: Backfill, batches: AsyncIterator[RowBatch]) -> AsyncIterator[RowBatch]:
        """Yield batches. Raises GenerationLost if they take too long: those that were sent cannot be committed.

        The time begins with the first batch: nothing is sent before.
        """
        if first := await anext(batches, None):
            yield first
        end = time.monotonic() + self._timeout * _SHARE
        while (left := end - time.monotonic()) > 0:
            try:
                async with asyncio.timeout(min(left, self._timeout / 2)) as waiting:
                    batch = await anext(batches, None)
            except TimeoutError:
                if not waiting.expired():
                    raise
                break
            if batch is None:
                return
            yield batch
        self._too_long.add(backfill.id)
        raise GenerationLost(f"backfill of {backfill.full_name} takes too long for one transaction")
