"""A start after a GTID set.

The progress topic has the GTID sets and ordinals of the latest commits. The last one whose transactions are all in the
set is where the start is; the first one that has the whole set is where nothing more of it can come.
"""

import asyncio

from databus.executed import Executed
from databus.published_up_to import wait_until_published
from databus.source import Source
from databus_binlog import GtidSet, InvalidPosition
from databus_core.errors import ChangesLost, InvalidSettings
from databus_core.kafka_progress import read_history
from databus_core.progress import Progress

#: how much older than its Kafka transaction permits a record's time may be
_SLACK_SECONDS = 60.0
_INSTEAD = "begin with a snapshot, or with a time, and expect changes that you have"


class GtidStart:
    """Where the changes begin that are not in a GTID set."""

    def __init__(self, after: Progress, until: Progress, gtid_set: GtidSet, earliest_ms: int) -> None:
        #: ordinal of the last transaction of the progress before the start
        self.after = after.transaction
        #: no record of a later transaction has an earlier time
        self.earliest_ms = earliest_ms
        #: None if the set has no later transaction
        self.executed: Executed | None = None
        if until.transaction > after.transaction:
            self.executed = Executed(str(gtid_set), until.transaction, _set_of(after))


async def find_start(source: Source, text: str) -> GtidStart:
    """Find where to begin after the transactions of a GTID set. Waits until the pipeline has published all of them.

    Raises InvalidSettings if the text is no set of this kind of server, and ChangesLost if the set lacks transactions
    that were published before the oldest progress that Kafka still has.
    """
    try:
        gtid_set = GtidSet.of_either(text)
    except InvalidPosition as error:
        raise InvalidSettings(f"start: {error}") from error

    def missing(progress: Progress) -> GtidSet:
        if not _set_of(progress):
            raise InvalidSettings("start: the server of the pipeline has no GTIDs: begin with a position or a time")
        return gtid_set.minus(_parsed(gtid_set, progress))

    await wait_until_published(source, missing)
    history = await read_history(source.settings)
    return await asyncio.to_thread(_found, history, gtid_set, source.settings.publisher.transaction_timeout)


def _found(history: list[tuple[Progress, int]], gtid_set: GtidSet, transaction_timeout: float) -> GtidStart:
    reset = history[-1][0].reset
    known = [(progress, time_ms) for progress, time_ms in history if progress.reset == reset and _set_of(progress)]
    if not known:
        raise ChangesLost(f"start: the pipeline was reset, and has published nothing since then: {_INSTEAD}")
    covered = [index for index, (each, _) in enumerate(known) if gtid_set.covers(_parsed(gtid_set, each))]
    if not covered:
        oldest = _set_of(known[0][0])
        raise ChangesLost(
            "start: the GTID set lacks transactions that were published before the oldest progress that Kafka still "
            f"has (gtid:{oldest}), so it is not known where they are: give all that the server had executed "
            f"(gtid_executed, or gtid_binlog_pos), {_INSTEAD}"
        )
    last = covered[-1]
    after, time_ms = known[last]
    later = known[last:]
    until = next((each for each, _ in later if _parsed(gtid_set, each).covers(gtid_set)), None)
    if until is None:  # it had, when it was waited for
        raise ChangesLost(f"start: the pipeline has failed over to a server that lacks some of the GTIDs: {_INSTEAD}")
    # A record is at most so much older than the progress of its Kafka transaction, whichever publisher's clock it has.
    longest_ms = int((transaction_timeout + _SLACK_SECONDS) * 1000)
    return GtidStart(after, until, gtid_set, min([time_ms, *(each - longest_ms for _, each in later[1:])]))


def _set_of(progress: Progress) -> str:
    return progress.position.gtid_set if progress.position else ""


def _parsed(like: GtidSet, progress: Progress) -> GtidSet:
    """Parse the progress's GTID set. Raises InvalidSettings if it is of another kind of server."""
    try:
        return type(like).from_text(_set_of(progress))
    except ValueError as error:
        raise InvalidSettings(
            f"start: the pipeline has GTIDs of another kind of server: {_set_of(progress)}"
        ) from error
