"""What the tests of both engines share: the result of a dump, and random server ids."""

import secrets
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import msgspec

from databus_binlog import AnyEvent, BinlogError, Engine, Gtid, Rows, TableMap, Value

LIBRARY: Engine = "mysql-replication"


class Log(NamedTuple):
    """The result of a dump."""

    events: list[AnyEvent]
    tables: dict[str, TableMap]
    failure: BinlogError | None

    @property
    def rows(self) -> list[tuple[str, str, list[list[Value]]]]:
        """The table's name, action and images of each rows event."""
        return [(self.tables[e.table].name, e.action, e.images()) for e in self.events if isinstance(e, Rows)]

    @property
    def comparable(self) -> list[object]:
        """The events with decoded rows, and without the fields of a GTID that only the native engine knows."""
        return [
            (*msgspec.structs.astuple(e)[:-1], e.images())
            if isinstance(e, Rows)
            else msgspec.structs.replace(e, commit_time_us=0, alter="")
            if isinstance(e, Gtid)
            else e
            for e in self.events
        ]


Read = Callable[..., Awaitable[Log]]


def random_server_id() -> int:
    return secrets.randbelow(2**31) + 1000


def type_names(events: list[AnyEvent]) -> list[str]:
    """Return the name of each event's class."""
    return [type(event).__name__ for event in events]
