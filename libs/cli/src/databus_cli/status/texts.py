"""The sections of `databus status`, as values for JSON and as lines for people."""

from typing import TypeAlias

import msgspec

from databus_cli.backfill.table import state_of
from databus_core.backfill_status import BackfillStatus
from databus_core.events import full_name
from databus_core.pipeline_status import PipelineStatus
from databus_core.pipeline_status.requests import TableInDoubt

TableItem: TypeAlias = TableInDoubt | BackfillStatus
#: what a section shows, as JSON: values, of which None means that there is none, or a list
Values: TypeAlias = dict[str, object] | list[TableItem]

#: fields of `PipelineStatus` that are not shown as sections; `databus backfill list` shows backfills that have ended
_OTHER_FIELDS = {"pipeline", "time", "errors", "ended_backfills"}
#: section → what is shown for a value that is None; in other sections it is left out
_MISSING = {"lag": "not known", "freshness": "not known", "leaders": "nobody"}


def sections(status: PipelineStatus) -> dict[str, Values]:
    """Return all sections by name. One that could not be read has only `error`."""
    found = msgspec.structs.asdict(status)
    return {
        name: {"error": status.errors[name]} if name in status.errors else _values(value)
        for name, value in found.items()
        if name not in _OTHER_FIELDS
    }


def _values(section: object) -> Values:
    return msgspec.structs.asdict(section) if isinstance(section, msgspec.Struct) else section  # type: ignore[return-value]


def lines(pipeline: str, found: dict[str, Values]) -> list[str]:
    """Lay out sections: a headline for each, then its items or values, indented; a single value beside the headline."""
    shown = [f"pipeline {pipeline}"]
    for name, values in found.items():
        head = f"{name.replace('_', ' ')}:"
        inside = [line(each) for each in values] if isinstance(values, list) else _pairs(name, values)
        if not inside:
            shown.append(f"{head} none")
        elif len(inside) == 1 and isinstance(values, dict):
            shown.append(f"{head} {inside[0]}")
        else:
            shown += [head, *(f"  {each}" for each in inside)]
    return shown


def line(item: TableItem) -> str:
    """Describe a table in doubt or a backfill in one line."""
    name = full_name(item.schema, item.table)
    if isinstance(item, TableInDoubt):
        heal = f"backfill {item.backfill}" if item.backfill else f"run `databus backfill start {name} --clean`"
        return f"{name} is {item.state} since {item.since}: {item.text}; {heal}"
    return f"{item.id} of {name}: {state_of(item)}, {item.rows:,} of about {item.estimate:,} rows"


def _pairs(section: str, values: dict[str, object]) -> list[str]:
    """Lay out the values that a section has; several of them stand below one another."""
    texts = {key.replace("_", " "): text for key, each in values.items() if (text := _text(section, key, each))}
    width = 13 if len(texts) > 1 else 0
    return [f"{key:<{width}} {text}" for key, text in texts.items()]


def _text(section: str, key: str, value: object) -> str:
    """Return a value for people. Only amounts are grouped by thousands: an offset has to be copied."""
    if value is None:
        return _MISSING.get(section, "")
    return f"{value:,}" if key.endswith("bytes") else str(value)
