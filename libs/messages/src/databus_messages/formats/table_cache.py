"""A cache for what an encoder derives from each version of a table's schema."""

from collections.abc import Callable
from typing import Generic, TypeVar

from databus_core.events import Table

Derived = TypeVar("Derived")


class TableCache(Generic[Derived]):
    """Derives a value from each version of a table on first use. Versions differ in their fingerprint."""

    def __init__(self, derive: Callable[[Table], Derived]) -> None:
        self._derive = derive
        self._derived: dict[str, Derived] = {}

    def __getitem__(self, table: Table) -> Derived:
        derived = self._derived.get(table.fingerprint)
        if derived is None:
            derived = self._derived[table.fingerprint] = self._derive(table)
        return derived

    def __contains__(self, table: Table) -> bool:
        return table.fingerprint in self._derived
