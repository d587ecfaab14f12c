"""Read views on a MariaDB whose engine commits XA transactions after the binlog has their XA COMMIT."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from databus_binlog import Position
from databus_binlog.session import Session
from databus_changes.snapshot import xa_commits
from databus_changes.snapshot.view import start_current_view, start_view
from databus_core.errors import SourceUnavailable

END = Position("0-1-9", "log.000001", 900)
_LOCKS = {"FLUSH TABLES WITH READ LOCK", "BACKUP STAGE BLOCK_COMMIT"}
_UNLOCKS = {"UNLOCK TABLES", "BACKUP STAGE END"}


@dataclass
class MariaDB:
    """A server whose binlog ends at END with the XA COMMIT of transaction x."""

    #: how often XA RECOVER lists x before the engine commits it
    late: int
    #: a transaction that stays prepared
    undecided: set[str] = field(default_factory=set)
    #: a replica's threads give way to the lock before the engine commits
    is_replica: bool = False
    xa_commits: int = 1
    #: offsets that another session's SHOW STATUS puts in place of the view's
    wrong_offsets: list[int] = field(default_factory=list)
    server: Any = field(default_factory=lambda: SimpleNamespace(flavor="mariadb"))
    is_locked: bool = False
    #: whether the view contains x, and was opened under the lock
    has_x: bool = False
    view_is_locked: bool = False
    statements: list[str] = field(default_factory=list)

    async def query(self, sql: str, args: tuple[object, ...] = (), *, grant: str = "") -> list[tuple[object, ...]]:
        self.statements.append(sql)
        if sql.startswith("START TRANSACTION"):
            self.has_x, self.view_is_locked = not self.late, self.is_locked
        elif sql in _LOCKS:
            self.is_locked = True
            self.late = self.late if self.is_replica else 0
        elif sql in _UNLOCKS:
            self.is_locked = False
        elif sql == "XA RECOVER":
            listed = self.undecided | ({"x"} if self.late else set())
            if self.late and not (self.is_locked and self.is_replica):
                self.late -= 1
            return [(1, 1, 0, each) for each in listed]
        elif "information_schema.global_status" in sql:
            offsets = [self.wrong_offsets.pop() if self.wrong_offsets else END.offset, END.offset]
            found: list[tuple[object, ...]] = [("BINLOG_SNAPSHOT_POSITION", each) for each in offsets]
            return [*found, ("BINLOG_SNAPSHOT_FILE", END.file), ("COM_XA_COMMIT", self.xa_commits)]
        elif sql.startswith("SHOW GLOBAL STATUS"):
            return [(args[0], {"Com_xa_commit": self.xa_commits, "Slaves_running": int(self.is_replica)}[str(args[0])])]
        return []

    async def log_status(self) -> list[tuple[object, ...]]:
        return [(END.file, END.offset, "", "")]

    async def current_position(self) -> Position:
        return Position(await self.gtid_at(END.file, END.offset), END.file, END.offset)

    async def gtid_at(self, file: str, offset: int) -> str:
        assert not self.is_locked  # it searches a file
        return END.gtid_set if (file, offset) == (END.file, END.offset) else ""

    @property
    def locks(self) -> int:
        return sum(each in _LOCKS for each in self.statements)


async def view_behind(database: MariaDB) -> None:
    await start_view(cast(Session, database), END)
    assert not database.is_locked


async def current_view(database: MariaDB) -> None:
    assert await start_current_view(cast(Session, database)) == END
    assert not database.is_locked


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in {"_PAUSE": 0.001, "_LOCK_PAUSE": 0.001, "_TIMEOUT": 0.2}.items():
        monkeypatch.setattr(xa_commits, name, seconds)


async def test_a_server_without_xa_takes_no_lock() -> None:
    database = MariaDB(late=0, xa_commits=0)
    await view_behind(database)
    await current_view(database)
    assert (database.locks, database.statements.count("XA RECOVER")) == (0, 0)


async def test_a_view_whose_position_is_not_certain_is_replaced() -> None:
    database = MariaDB(late=0, xa_commits=0, wrong_offsets=[END.offset + 100, END.offset - 100])
    await view_behind(database)
    assert sum(each.startswith("START TRANSACTION") for each in database.statements) == 3


@pytest.mark.parametrize("is_replica", [False, True])
async def test_a_view_waits_until_the_engine_has_committed(is_replica: bool) -> None:
    database = MariaDB(late=3, is_replica=is_replica)
    await view_behind(database)
    assert (database.has_x, database.locks) == (True, 0)


async def test_the_lock_shows_that_a_transaction_is_only_prepared() -> None:
    database = MariaDB(late=1000, undecided={"y"})
    await view_behind(database)
    assert (database.has_x, database.locks) == (True, 1)


async def test_a_view_with_a_position_is_opened_under_the_lock() -> None:
    database = MariaDB(late=1000, undecided={"y"})
    await current_view(database)
    assert (database.has_x, database.view_is_locked, database.locks) == (True, True, 1)


async def test_on_a_replica_the_lock_is_taken_until_nothing_is_prepared() -> None:
    database = MariaDB(late=1, is_replica=True)
    with pytest.raises(SourceUnavailable, match="XA RECOVER lists"):
        await current_view(database)
    assert database.locks > 1
    database.late = 0
    await current_view(database)
    assert (database.has_x, database.view_is_locked) == (True, True)


async def test_a_transaction_that_stays_prepared_on_a_replica_is_an_error() -> None:
    database = MariaDB(late=0, undecided={"y"}, is_replica=True)
    for open_view in (view_behind, current_view):
        with pytest.raises(SourceUnavailable, match="XA RECOVER lists"):
            await open_view(database)
