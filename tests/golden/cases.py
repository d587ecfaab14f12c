"""Golden cases: the lines of `databus binlog --format` for the binlogs here, with constants for volatile members."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from databus_binlog import AnyEvent, TableMap
from databus_cli.binlog.choice import Choice
from databus_cli.binlog.definitions import NoDefinitions
from databus_cli.binlog.files import read_files
from databus_cli.binlog.messages import Messages
from databus_core.settings import Source
from devstack import Kind
from golden.registry import registry

FOLDER = Path(__file__).parent
KINDS: tuple[Kind, ...] = ("mariadb", "mysql")


class Case(NamedTuple):
    """A format with options; its golden files are named after the format and the options."""

    format: str
    options: tuple[tuple[str, str], ...] = ()
    #: the only captured table; "" for all tables
    table: str = ""

    def __str__(self) -> str:
        return ",".join([self.format, *map("=".join, self.options)])


_NO_SCHEMAS, _PRECISE = ("schemas_enable", "false"), ("bigint_unsigned", "precise")
CASES = [
    Case("databus"),
    Case("databus", (("compat", "strict"),)),
    Case("canal-json"),
    Case("canal-protobuf"),
    Case("debezium-json", table="items"),
    Case("debezium-json", (_NO_SCHEMAS, _PRECISE, ("provide_transaction_metadata", "true"))),
    Case("debezium-avro", (_PRECISE,)),
    Case("maxwell-json", (("output_ddl", "true"), ("output_xoffset", "true"))),
    Case("tdsql"),
    Case("dip"),
]

#: format → patterns of members that differ from run to run (the time of encoding, random ids), and their replacements
_VOLATILE = {
    "canal-json": [(re.compile(rb'(?<="ts":)\d+(?=,"type")'), b"0")],
    "debezium-json": [
        (re.compile(rb'"ts_ms":\d+,"ts_us":\d+,"ts_ns":\d+(?=}[,}\n])'), b'"ts_ms":0,"ts_us":0,"ts_ns":0'),
        (re.compile(rb'"ts_ms":\d+(?=,"databaseName")'), b'"ts_ms":0'),
    ],
    "maxwell-json": [(re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"), b"random")],
}


def path(kind: Kind, case: Case) -> Path:
    """Return the golden file of a case."""
    return FOLDER / kind / f"{case}.jsonl"


def records(kind: Kind, case: Case) -> bytes:
    """Return the lines of a case; with Avro, the registered schemas follow."""
    captured = Source(include=[f"*.{case.table or '*'}"])
    with nullcontext(("", [])) if case.format != "debezium-avro" else registry() as (url, schemas):
        options = dict(case.options) | ({"schema_registry_url": url} if url else {})
        lines = Messages(case.format, options, captured, NoDefinitions(), Choice(), lenient=False)
        with patch("time.time_ns", return_value=0):  # times in Avro cannot be replaced afterwards
            encoded = b"".join(line for event in events(kind, captured.captures) for line in lines.of(*event))
    schema_lines = (json.dumps({"id": number, "schema": schema}) + "\n" for number, schema in enumerate(schemas, 1))
    return without_volatile(case, encoded) + "".join(schema_lines).encode()


def without_volatile(case: Case, lines: bytes) -> bytes:
    """Replace volatile members by constants."""
    for pattern, constant in _VOLATILE.get(case.format, ()):
        lines = pattern.sub(constant, lines)
    return lines


def events(
    kind: Kind, wanted: Callable[[str, str], bool] | None = None
) -> Iterator[tuple[AnyEvent, Mapping[str, TableMap]]]:
    """Read the events of a binlog in this folder, with the rows of the wanted tables."""
    return read_files([str(FOLDER / f"{kind}.bin")], wanted=wanted)
