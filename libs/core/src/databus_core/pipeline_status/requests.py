"""Sections of the state of a pipeline: what operators have requested, and what needs them."""

from collections import Counter
from itertools import islice
from typing import Literal

import msgspec

from databus_binlog.times import time_text
from databus_core.backfill_status import BackfillStatus, newest_first, status_of
from databus_core.events import first_names
from databus_core.kafka_dead_letters import open_letters
from databus_core.pipeline_status.reads import Reads
from databus_core.table_states import FINAL_STATES

#: how many backfills that have ended are listed
_ENDED = 5


class SkippedTransactions(msgspec.Struct, frozen=True, kw_only=True):
    """What the reader will skip."""

    #: by GTID or position, separated by commas; null: none
    transactions: str | None


class TableInDoubt(msgspec.Struct, frozen=True, kw_only=True):
    """A table whose rows in Kafka may differ from those in the database; the fields are those of `TableDoubt`."""

    schema: str
    table: str
    #: `parked`: its changes are not published; `filling`: a backfill ends the doubt
    state: Literal["parked", "filling"]
    #: kind of the doubt
    reason: str
    #: what happened and where
    text: str
    #: binlog file of the event that raised the doubt
    file: str
    #: and its offset there
    offset: int
    #: when the table was parked
    since: str
    #: id of the backfill that ends the doubt; null: none is requested
    backfill: str | None


class DeadLetterCount(msgspec.Struct, frozen=True, kw_only=True):
    """The dead letters that were not replayed."""

    count: int
    #: commit time of the oldest
    oldest: str | None
    #: tables with their numbers
    tables: str | None


async def read_skips(reads: Reads) -> SkippedTransactions:
    """Return the transactions that the reader will skip, by GTID or position."""
    return SkippedTransactions(transactions=", ".join((await reads.states()).skips) or None)


async def read_doubts(reads: Reads) -> list[TableInDoubt]:
    """List the tables in doubt, by name."""
    return [
        TableInDoubt(
            schema=schema,
            table=table,
            state=doubt.state,
            reason=doubt.reason,
            text=doubt.text,
            file=doubt.file,
            offset=doubt.offset,
            since=time_text(doubt.since_us),
            backfill=doubt.backfill or None,
        )
        for (schema, table), doubt in sorted((await reads.states()).doubts.items())
    ]


async def read_backfills(reads: Reads) -> list[BackfillStatus]:
    """List the backfills that have not ended, the oldest request first."""
    states = await reads.states()
    return [status_of(states, each) for each in states.unfinished()]


async def read_ended_backfills(reads: Reads) -> list[BackfillStatus]:
    """List the latest backfills that have ended, the newest request first."""
    ended = (each for each in newest_first(await reads.states()) if each.state in FINAL_STATES)
    return list(islice(ended, _ENDED))


async def read_dead_letters(reads: Reads) -> DeadLetterCount:
    """Return how many dead letters were not replayed, since when, and of which tables."""
    async with open_letters(reads.settings) as letters:
        found = await letters.pending()
    tables = Counter(letter.about.table_name for letter in found)
    return DeadLetterCount(
        count=len(found),
        oldest=min((letter.time for letter in found), default=None),
        tables=first_names([f"{table} ({count})" for table, count in sorted(tables.items())]) or None,
    )
