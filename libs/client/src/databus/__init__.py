"""The client of MySQL Databus: all rows of your tables, then every change, as Python objects.

    async with Databus("http://dump-api:8080") as databus:
        async for change in databus.changes("shop.*", store="place.json"):
            print(change.action, change.table, change.after)
            await change.ack()

docs/reference/client.md describes everything that this package has.
"""

from typing import Any

from databus.bookmark import Bookmark
from databus.change import Change, Transaction
from databus.changes import Changes
from databus.client import Databus
from databus.extras import of_extra
from databus.stores import FileStore, SqliteStore, Store
from databus_binlog import Position
from databus_core.errors import (
    ChangeMissing,
    ChangesLost,
    DatabusError,
    DumpUnusable,
    InvalidSettings,
    RetryableError,
    RulesDiffer,
)


def __getattr__(name: str) -> Any:
    """Import what needs an extra when it is used."""
    if module := {"SqlStore": "sql_store", "apply": "applying"}.get(name):
        return getattr(of_extra(module, "sql"), name)
    raise AttributeError(f"module 'databus' has no attribute {name!r}")


__all__ = [
    "Bookmark",
    "Change",
    "ChangeMissing",
    "Changes",
    "ChangesLost",
    "Databus",
    "DatabusError",
    "DumpUnusable",
    "FileStore",
    "InvalidSettings",
    "Position",
    "RetryableError",
    "RulesDiffer",
    "SqliteStore",
    "Store",
    "Transaction",
]
