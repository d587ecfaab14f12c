"""Generates the examples in docs/guide/formats.md: the same four changes in each format of CASES."""

import re
from collections.abc import Iterator
from pathlib import Path

from databus_binlog import Gtid, Query
from databus_cli.binlog.choice import Choice
from databus_cli.binlog.definitions import NoDefinitions
from databus_cli.binlog.messages import Messages
from databus_core.settings import Source
from golden.cases import Case, events, without_volatile

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "formats.md"
CASES = [
    Case("databus"),
    Case("canal-json"),
    Case("canal-protobuf"),
    Case("debezium-json", (("schemas_enable", "false"),)),
    Case("maxwell-json", (("output_ddl", "true"),)),
    Case("tdsql"),
    Case("dip"),
]
#: the first transactions of the table in MariaDB's binlog, in order; the guide has all except CREATE. CREATE
#: DATABASE is left out
CHANGES = ["CREATE", "INSERT", "UPDATE", "DELETE", "ALTER"]
_TABLE = "items"
_GENERATED = re.compile(r"(?<=<!-- written by `make golden` -->\n).*(?=<!-- until here -->)", re.DOTALL)


def with_examples(guide: str) -> str:
    """Return the guide's text with newly generated examples."""
    return _GENERATED.sub(lambda _: examples(), guide)


def examples() -> str:
    lines = {case: list(transactions(case)) for case in CASES}
    parts = []
    for index, change in enumerate(CHANGES):
        if change == "CREATE":
            continue
        parts.append(f"\n### {change}\n")
        for case in CASES:
            options = "".join(f" --option {name}={value}" for name, value in case.options)
            parts.append(f"\n`--format {case.format}{options}`\n\n```json\n{lines[case][index]}```\n")
    return "".join(parts)


def transactions(case: Case) -> Iterator[str]:
    """Yield the lines of each transaction that changes the table, unless it is the last one of the binlog."""
    captured = Source(include=[f"*.{_TABLE}"])
    lines = Messages(case.format, dict(case.options), captured, NoDefinitions(), Choice(), lenient=False)
    encoded = b""
    for event, tables in events("mariadb", captured.captures):
        if isinstance(event, Gtid) and encoded:
            yield without_volatile(case, encoded).decode()
            encoded = b""
        written = b"".join(lines.of(event, tables))
        if not (isinstance(event, Query) and event.query.startswith(b"CREATE DATABASE")):
            encoded += written
