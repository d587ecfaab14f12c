"""What the checks of a host say about GTIDs, and about the binlog's retention and the pipeline's lag."""

from collections.abc import Sequence
from typing import Any

import pytest

from databus_binlog import Position, Server
from databus_changes.host_checks import Host
from databus_changes.reader_checks import READER_CHECKS
from databus_core.checks import Warned
from databus_core.progress import Progress
from databus_core.settings import Settings
from databus_core.source_log import Lag, read_lag, read_retention

NOW = 1_795_000_000
LOGS = {"bin.000001": 1000, "bin.000002": 500}


class Database:
    """A session with a MySQL server whose log ends at bin.000002:500."""

    def __init__(self, gtid_set: str = "", **variables: str) -> None:
        self.gtid_set, self.variables = gtid_set, variables
        self.server = Server("mysql", "9.0.0", 1, "me", gtid=bool(gtid_set), variables=variables)

    async def query(self, sql: str, _: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        return [(NOW,)] if "SYSDATE" in sql else list(self.variables.items())

    async def current_position(self) -> Position:
        return Position(self.gtid_set, "bin.000002", 500)

    async def logs(self) -> dict[str, int]:
        return LOGS


A = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


@pytest.mark.parametrize(
    ("position", "server", "lag"),
    [
        (Position("", "bin.000001", 400), "me", Lag(60.0, 1100)),
        (Position("", "bin.000001", 400), "other", Lag(60.0, None)),
        (Position("", "bin.000000", 400), "me", Lag(60.0, None)),
        (Position("", "bin.000002", 500), "me", Lag(0.0, 0)),
        (Position("", "bin.000002", 500), "other", Lag(60.0, None)),
        (Position(f"{A}:1-8", "bin.000002", 400), "me", Lag(60.0, 100)),
        # what follows in the log is no transaction
        (Position(f"{A}:1-9", "bin.000002", 400), "me", Lag(0.0, 0)),
        (Position(f"{A}:1-9"), "other", Lag(0.0, 0)),
        (None, "", Lag(None, None)),
    ],
)
async def test_the_lag_is_measured_from_the_position_to_the_end_of_the_log(
    position: Position | None, server: str, lag: Lag
) -> None:
    database = Database(f"{A}:1-9" if position and position.gtid_set else "")
    progress = Progress(position, server=server, time_us=(NOW - 60) * 1_000_000)
    assert await read_lag(database, progress) == lag  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("variables", "seconds"),
    [
        ({"binlog_expire_logs_seconds": "60", "expire_logs_days": "0"}, 60.0),
        ({"binlog_expire_logs_seconds": "60", "binlog_expire_logs_auto_purge": "OFF"}, None),
        ({"binlog_expire_logs_seconds": "0", "expire_logs_days": "0"}, None),
        ({"expire_logs_days": "0.5"}, 43200.0),
        ({}, None),
    ],
)
async def test_the_retention_is_read_in_all_its_forms(variables: dict[str, str], seconds: float | None) -> None:
    assert await read_retention(Database(**variables)) == seconds  # type: ignore[arg-type]


async def checked(what: str, database: Database, behind: int, hosts: int = 1) -> str:
    settings = Settings(name="p", source={"hosts": [f"db{number}:3306" for number in range(hosts)]})
    progress = Progress(Position("", "bin.000001", 4), server="me", time_us=(NOW - behind) * 1_000_000)
    host = Host(settings, "db0:3306", database, progress)  # type: ignore[arg-type]
    [make] = [check.make for check in READER_CHECKS if check.what == what]
    return await make(host)


async def test_a_lag_that_comes_near_the_retention_is_a_warning() -> None:
    week = Database(binlog_expire_logs_seconds=str(7 * 86400))
    assert await checked("retention", week, behind=3 * 86400) == "binlogs are kept for 7 days"
    with pytest.raises(Warned, match=r"4 days, 0:00:00 behind, and binlogs are deleted after 7 days: raise"):
        await checked("retention", week, behind=4 * 86400)
    with pytest.raises(Warned, match="a reader that is stopped for longer has to start over"):
        await checked("retention", Database(binlog_expire_logs_seconds="86400"), behind=1)


async def test_without_gtids_only_several_hosts_are_a_warning() -> None:
    off = Database(gtid_mode="OFF")
    assert await checked("GTIDs", off, 0) == "gtid_mode is OFF: positions are files and offsets"
    with pytest.raises(Warned, match="cannot continue at another host: set gtid_mode=ON"):
        await checked("GTIDs", off, 0, hosts=2)
