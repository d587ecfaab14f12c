"""Filters and pages of the list of dumps."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection, Sequence
from datetime import datetime

from databus_core.manifest import DumpList, Manifest, State
from databus_core.table_filter import TableFilter
from databus_dump_api.problems import UnknownCursor


def page(
    newest_first: Sequence[Manifest],
    states: Collection[State],
    table: str | None,
    limit: int | None,
    cursor: str | None,
) -> DumpList:
    """Select dumps in these states (none: any) with a table that matches a pattern, after the page before `cursor`.

    Raises UnknownCursor.
    """
    after = _read(cursor) if cursor else None
    tables = TableFilter([table]) if table else None
    found: list[Manifest] = []
    for manifest in newest_first:
        if states and manifest.state not in states:
            continue
        if after and _order(manifest) >= after:
            continue
        if tables and not any(tables.matches(each.schema, each.name) for each in manifest.tables):
            continue
        if limit and len(found) == limit:
            return DumpList(found, _cursor(found[-1]))
        found.append(manifest)
    return DumpList(found)


def _order(manifest: Manifest) -> tuple[datetime, str]:
    return manifest.created, manifest.id


def _cursor(last: Manifest) -> str:
    return urlsafe_b64encode(f"{last.created.isoformat()} {last.id}".encode()).decode()


def _read(cursor: str) -> tuple[datetime, str]:
    try:
        created, _, dump = urlsafe_b64decode(cursor).decode().partition(" ")
        after = datetime.fromisoformat(created)
    except ValueError as error:
        raise UnknownCursor("cursor: not the `next` of an earlier answer") from error
    if after.tzinfo is None:
        raise UnknownCursor("cursor: not the `next` of an earlier answer")
    return after, dump
