"""Writes the binlogs of the golden files: a real server executes the statements of the SQL files in this folder."""

from collections.abc import Iterator
from pathlib import Path

from common.connections import Print
from devstack import Kind

FOLDER = Path(__file__).parent
#: kind of server → session settings for fixed ids (only MariaDB), and for logging statements with their rows
_SESSION: dict[Kind, list[str]] = {
    "mariadb": ["SET gtid_domain_id = 5, server_id = 1", "SET binlog_annotate_row_events = ON"],
    "mysql": ["SET binlog_rows_query_log_events = ON"],
}
_START = 1_700_000_000
_UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def statements(kind: Kind) -> Iterator[str]:
    """Yield the statements for a kind of server."""
    for name in ("common", kind):
        for line in (FOLDER / f"{name}.sql").read_text().splitlines():
            if not line.startswith("--"):
                yield line


async def write(kind: Kind, run: Print, *, same_gtids: bool = False) -> None:
    """Run the statements with timestamps one second apart.

    `same_gtids` makes MySQL use fixed GTIDs, which the server must not have executed before.
    """
    for statement in (*_SESSION[kind], "SET pseudo_thread_id = 7"):
        await run(statement)
    in_transaction = False
    for number, statement in enumerate(statements(kind)):
        if kind == "mysql" and same_gtids and not in_transaction:
            await run(f"SET gtid_next = '{_UUID}:{number + 1}', original_commit_timestamp = {(_START + number)}250000")
        in_transaction = statement == "BEGIN" or (in_transaction and statement != "COMMIT")
        await run(f"SET timestamp = {_START + number}")
        await run(statement)
    if kind == "mysql":
        await run("SET gtid_next = AUTOMATIC")
