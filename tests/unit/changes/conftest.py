"""Binlog events made by hand, and their translation as in the reader."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from databus_binlog import (
    AnyEvent,
    ColumnMap,
    Decoder,
    FieldType,
    Flavor,
    Gtid,
    OversizedRows,
    Query,
    Rotate,
    Rows,
    RowsQuery,
    TableMap,
    XaPrepare,
    Xid,
    read_file,
)
from databus_binlog.events import ABSENT
from databus_changes.ddl.dialect import Dialect
from databus_changes.doubts import Doubt, Parking, stop
from databus_changes.prepared import PreparedTransactions
from databus_changes.tracker import TableTracker
from databus_changes.translate import Translator
from databus_core.events import Column, Event, Table
from databus_core.kafka_history import SchemaHistory
from databus_core.progress import Progress
from databus_core.settings import Source

FIXTURES = Path(__file__).parents[2] / "fixtures"
SOURCE = Source(include=["shop.*", "club.member"], exclude=["shop.audit"])


class Log:
    """Makes the events of the file binlog.7, 10 bytes each."""

    #: the server's UUID in the GTIDs; their numbers count from 1
    uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562"

    def __init__(self) -> None:
        self._end = 4
        self._gtids = 0

    def table(self, name: str = "t", columns: str = "id", *, schema: str = "shop") -> TableMap:
        """Return a table map of INT columns, as binlog_row_metadata=FULL logs it; the first one is the primary key."""
        maps = tuple(
            ColumnMap(name=c, type=FieldType.LONG, metadata=0, nullable=False, unsigned=False) for c in columns.split()
        )
        fingerprint = f"{schema}.{name} {columns}"
        return TableMap(schema=schema, name=name, columns=maps, key=(0,), has_names=True, fingerprint=fingerprint)

    def nameless(self, name: str = "t", columns: int = 1, kind: FieldType = FieldType.LONG) -> TableMap:
        """Return a table map of a table in shop, as binlog_row_metadata=NO_LOG logs it."""
        maps = (ColumnMap(type=kind, metadata=0, nullable=False),) * columns
        return TableMap(schema="shop", name=name, columns=maps, has_names=False, fingerprint=f"{name} {columns} {kind}")

    def known(self, name: str = "t", columns: str = "id", *, raw_type: str = "int(11)") -> Table:
        """Return a table in shop, as information_schema describes it."""
        listed = tuple(Column(name=column, type="int", raw_type=raw_type) for column in columns.split())
        return Table(schema="shop", name=name, columns=listed, primary_key=(0,), charset="utf8mb4")

    def _header(self) -> dict[str, Any]:
        start, self._end = self._end, self._end + 10
        return {"time": 1_700_000_000, "server_id": 1, "file": "binlog.7", "start": start, "end": self._end}

    def gtid(
        self, gtid: str | None = None, *, standalone: bool = False, alter: str = "", us: int = 0, xa: bool = False
    ) -> Gtid:
        self._gtids += 1
        gtid = f"{self.uuid}:{self._gtids}" if gtid is None else gtid
        flags = {"standalone": standalone, "ddl": False, "alter": alter, "xa_prepare": xa}
        return Gtid(**self._header(), gtid=gtid, commit_time_us=us, **flags)

    def query(
        self, text: str | bytes, schema: str = "shop", *, thread: int = 9, error: int = 0, xid: int | None = None
    ) -> Query:
        query = text.encode() if isinstance(text, str) else text
        return Query(**self._header(), schema=schema, query=query, thread_id=thread, error_code=error, xid=xid)

    def rows_query(self, text: str) -> RowsQuery:
        return RowsQuery(**self._header(), query=text.encode())

    def rows(self, table: TableMap, action: str = "insert", count: int = 1, *, complete: bool = True) -> Rows:
        cell = b"1" if complete else ABSENT
        return Rows(
            **self._header(), table=table.fingerprint, table_id=219, action=action, count=count, complete=complete,
            statement_end=True, rows=msgspec.Raw(msgspec.msgpack.encode([[cell] * len(table.columns)] * count)),
        )  # fmt: skip

    def oversized(self, table: TableMap) -> OversizedRows:
        header = self._header()
        return OversizedRows(**header, table=table.fingerprint, action="insert", size=1 << 30, statement_end=True)

    def xid(self, xid: int = 5) -> Xid:
        return Xid(**self._header(), xid=xid)

    def xa_prepare(self, xid: str = "X'31',X'',1", *, one_phase: bool = False) -> XaPrepare:
        return XaPrepare(**self._header(), xid=xid, one_phase=one_phase)

    def rotate(self, next_file: str, *, artificial: bool = False) -> Rotate:
        return Rotate(**self._header(), next_file=next_file, position=4, artificial=artificial)


@dataclass
class Translation:
    """A translator and its tracker."""

    flavor: Flavor = "mysql"
    #: whether a doubt is collected; otherwise it stops the translation
    lenient: bool = False
    history: SchemaHistory = field(default_factory=SchemaHistory)
    source: Source = SOURCE
    #: (schema, name) → table in information_schema; None without a server
    listed: dict[tuple[str, str], Table] | None = field(default_factory=dict)
    gtids: bool = True
    partial: bool = False
    progress: Progress = field(default_factory=Progress)
    #: XA transactions that were prepared before the first event, and the log to read them from
    prepared: PreparedTransactions | None = None
    #: gets the doubts, instead of `lenient`
    parking: Parking | None = None

    def __post_init__(self) -> None:
        self.doubts: list[Doubt] = []
        self.looked_up: list[tuple[str, str]] = []
        lookup: Callable[[str, str], Awaitable[Table | None]] | None = None if self.listed is None else self._look_up
        dialect = Dialect(flavor=self.flavor, integer_widths=True)
        self.tracker = TableTracker(self.history, dialect, lookup=lookup, tracks=self.source.captures_some)
        on_doubt = self.doubts.append if self.lenient else stop
        self.translator = Translator(
            self.source,
            self.flavor,
            self.tracker,
            self.progress,
            gtids=self.gtids,
            partial=self.partial,
            on_doubt=on_doubt,
            parking=self.parking,
            prepared=self.prepared,
        )

    async def _look_up(self, schema: str, name: str) -> Table | None:
        assert self.listed is not None
        self.looked_up.append((schema, name))
        return self.listed.get((schema, name))

    async def of(self, *events: AnyEvent, table_maps: Iterable[TableMap] = ()) -> list[Event]:
        """Translate events.

        First the tracker describes the table maps, as it does for the decoder; their fingerprints stay the same.
        """
        tables = {
            table_map.fingerprint: msgspec.structs.replace(
                self.tracker.describe(table_map), fingerprint=table_map.fingerprint
            )
            for table_map in table_maps
        }
        return list(await self.translator.translate(events, tables))

    async def of_file(self, path: str) -> list[Event]:
        """Translate a file of tests/fixtures, decoded as in the reader."""
        out: list[Event] = []
        decoder = Decoder(
            file=Path(path).name, wanted=self.source.captures, describe=self.tracker.describe, by_statement=True
        )
        with (FIXTURES / path).open("rb") as file:
            for events in read_file(file.read, decoder):
                out += await self.translator.translate(list(events), events.tables)
        return out


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def make() -> type[Translation]:
    return Translation
