"""The examples of docs/guide/formats.md: what each format makes of the same four changes."""

import re
from collections.abc import Iterator
from pathlib import Path

from databus.settings import Source
from databus_binlog import Gtid
from databus_cli.binlog.messages import Messages
from golden.cases import Case, events, timeless

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
#: transactions of the table in the binlog of MariaDB, in their order
CHANGES = ["CREATE", "INSERT", "UPDATE", "DELETE", "ALTER"]
_TABLE = "items"
_GENERATED = re.compile(r"(?<=<!-- written by `make golden` -->\n).*(?=<!-- until here -->)", re.DOTALL)


def with_examples(guide: str) -> str:
    """Write the examples into the guide anew."""
    return _GENERATED.sub(lambda _: examples(), guide)


def examples() -> str:
    told = {case: list(transactions(case)) for case in CASES}
    parts = []
    for place, change in enumerate(CHANGES):
        if change == "CREATE":
            continue
        parts.append(f"\n### {change}\n")
        for case in CASES:
            options = "".join(f" --option {name}={value}" for name, value in case.options)
            parts.append(f"\n`--format {case.format}{options}`\n\n```json\n{told[case][place]}```\n")
    return "".join(parts)


def transactions(case: Case) -> Iterator[str]:
    """Yield the lines of each transaction that has some."""
    captured = Source(include=[f"*.{_TABLE}"])
    lines = Messages(case.format, dict(case.options), captured)
    told = b""
    for event, tables in events("mariadb", captured.captures):
        if isinstance(event, Gtid) and told:
            yield timeless(case, told).decode()
            told = b""
        told += b"".join(lines.of(event, tables))
