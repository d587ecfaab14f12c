"""Which tables a request for backfills names, and what of that does not fit the settings or the tables' states.

Each fault is one line: what, which table, what to do.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from databus_changes.tables import TableName
from databus_core.events import Table, full_name
from databus_core.settings import Settings
from databus_core.settings.rules import first_matches
from databus_core.table_filter import TableFilter
from databus_core.table_states import TableStates

#: characters of a condition; a record of Kafka has to contain it
MAX_WHERE = 2**16


class BackfillRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which tables a client wants to load, and how; see `databus_core.table_states.Backfill`."""

    #: `schema.table` patterns
    tables: Sequence[str]
    where: str = ""
    clean: bool = False
    output: str = ""
    any_size: bool = False


@dataclass
class Selection:
    """What the patterns of a request select."""

    #: by name
    tables: dict[TableName, Table] = field(default_factory=dict)
    #: names, not patterns, of tables that the account does not see, although the settings publish them
    unseen: list[TableName] = field(default_factory=list)
    #: patterns that match no table which is captured and published, and why
    faults: list[str] = field(default_factory=list)


def option_faults(settings: Settings, wanted: BackfillRequest) -> list[str]:
    """List the faults of a request that concern no table."""
    faults = []
    outputs = _outputs(settings)
    if wanted.output and wanted.output not in outputs:
        faults.append(f"there is no output {wanted.output}: publisher.routes has {', '.join(sorted(outputs))}")
    if wanted.clean and wanted.where:
        faults.append("clean and where exclude each other: leave out one of them")
    if len(wanted.where) > MAX_WHERE:
        faults.append(f"a condition may have at most {MAX_WHERE} characters, not {len(wanted.where)}")
    return faults


def select_tables(seen: Iterable[Table], settings: Settings, wanted: BackfillRequest) -> Selection:
    """Select from the tables that the account sees."""
    known = {(table.schema, table.name): table for table in seen}
    output = wanted.output if wanted.output in _outputs(settings) else ""
    published = {name: table for name, table in known.items() if not _exclusion(settings, name, output)}
    found = Selection()
    for pattern in dict.fromkeys(wanted.tables):
        if {*pattern} & {"*", "?"}:
            _select_pattern(found, pattern, published)
        else:
            _select_name(found, pattern, known, _exclusion(settings, _name(pattern), output))
    return found


def _select_pattern(found: Selection, pattern: str, published: dict[TableName, Table]) -> None:
    tables = TableFilter([pattern])
    matching = {name: table for name, table in published.items() if tables.matches(*name)}
    found.tables |= matching
    if not matching:
        found.faults.append(
            f"no captured and published table matches {pattern}: check the name, source.include, source.exclude and "
            "publisher.routes, and the user's SELECT privilege"
        )


def _select_name(found: Selection, text: str, known: dict[TableName, Table], exclusion: str) -> None:
    if exclusion:
        found.faults.append(exclusion)
    elif table := known.get(_name(text)):
        found.tables[_name(text)] = table
    else:
        found.unseen.append(_name(text))


def _name(text: str) -> TableName:
    schema, _, table = text.partition(".")
    return schema, table


def _outputs(settings: Settings) -> set[str]:
    return {rule.output for rule in settings.publisher.rules if not rule.drop}


def _exclusion(settings: Settings, name: TableName, output: str) -> str:
    """Return why the settings do not publish a table, or not by this output; empty if they do."""
    if not settings.source.captures(*name):
        return f"table {full_name(*name)} is not captured: check the name, source.include and source.exclude"
    outputs = {rule.output for rule in first_matches(settings.publisher.rules, *name)}
    if not outputs:
        return f"table {full_name(*name)} is not published: no rule of publisher.routes publishes it"
    if output and output not in outputs:
        return f"table {full_name(*name)} is not published by output {output}, only by {', '.join(sorted(outputs))}"
    return ""


def conflicts(states: TableStates, tables: Iterable[TableName], wanted: BackfillRequest) -> list[str]:
    """List the tables that are being loaded, or whose doubt this request would not end."""
    loading = {each.name: each.id for each in states.unfinished()}
    faults = []
    for name in tables:
        if backfill := loading.get(name):
            state = states.state(backfill)
            faults.append(f"table {full_name(*name)} has backfill {backfill} ({state}): let it end, or cancel it")
        elif name in states.doubts and (wanted.output or not wanted.clean):
            faults.append(f"table {full_name(*name)} is in doubt: request it with clean, and for all outputs")
    return faults
