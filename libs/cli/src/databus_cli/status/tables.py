"""The sections of `databus status` about single tables: those in doubt, and backfills that have not ended."""

from typing import Literal, TypeAlias

import msgspec

from databus_binlog.times import time_text
from databus_cli.backfill.table import state_of
from databus_core.backfill_status import BackfillStatus, status_of
from databus_core.events import full_name
from databus_core.table_states import TableStates


class TableInDoubt(msgspec.Struct, frozen=True, kw_only=True):
    """A table whose rows in Kafka may differ from those in the database; the fields are those of `TableDoubt`."""

    schema: str
    table: str
    state: Literal["parked", "filling"]
    reason: str
    text: str
    file: str
    offset: int
    #: when the table was parked
    since: str
    #: id of the backfill that ends the doubt; None: none is requested
    backfill: str | None


TableItem: TypeAlias = TableInDoubt | BackfillStatus


def tables_in_doubt(states: TableStates) -> list[TableItem]:
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
        for (schema, table), doubt in sorted(states.doubts.items())
    ]


def unfinished_backfills(states: TableStates) -> list[TableItem]:
    """List the backfills that have not ended, the oldest request first."""
    return [status_of(states, each) for each in states.unfinished()]


def line(item: TableItem) -> str:
    """Describe a table in doubt or a backfill in one line."""
    name = full_name(item.schema, item.table)
    if isinstance(item, TableInDoubt):
        heal = f"backfill {item.backfill}" if item.backfill else f"run `databus backfill start {name} --clean`"
        return f"{name} is {item.state} since {item.since}: {item.text}; {heal}"
    return f"{item.id} of {name}: {state_of(item)}, {item.rows:,} of about {item.estimate:,} rows"
