"""Requests for dumps: the work that they may do in the event loop."""

import threading
from collections.abc import Iterable

import pytest

from databus_changes.catalog import Queries
from databus_core.events import Table
from databus_core.settings import Settings
from databus_core.table_filter import TableFilter
from databus_dump_api import tables


class Session:
    async def query(self, sql: str, args: object = ()) -> list[tuple[object, ...]]:
        raise NotImplementedError


async def test_patterns_are_matched_outside_of_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand patterns and many tables take seconds, in which other clients want answers and leases."""
    threads: list[int] = []

    class Recording(TableFilter):
        def unmatched(self, tables: Iterable[tuple[str, str]]) -> list[str]:
            threads.append(threading.get_ident())
            return super().unmatched(tables)

    async def read_tables(_: Queries) -> list[Table]:
        return [Table(schema="shop", name=name, columns=()) for name in ("orders", "items")]

    monkeypatch.setattr(tables, "TableFilter", Recording)
    monkeypatch.setattr(tables, "read_tables", read_tables)
    settings = Settings.model_validate({"name": "shop", "source": {"include": ["shop.*"]}})
    (found,) = await tables.find_tables(Session(), settings, ["shop.o*"])
    assert found.name == "orders"
    assert threads != [threading.get_ident()]
