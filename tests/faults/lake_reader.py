"""Reads the lake of a storm: Delta's tables with delta-rs, which the sink does not use, and Iceberg's with Spark."""

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError

from databus_changes.tables import TableName
from databus_core.settings import Spark
from databus_core.settings.rules import Rule
from databus_spark.compare import Differences
from databus_spark.layout import Layout
from databus_spark_sink.session import open_session
from devstack.demo.compare import read_mirror
from faults.lake_replay import replay
from integration.sink_peers import read_with_spark

#: delta-rs does not know this feature, but reads such a table's files
_WIDENING = "typeWidening"


class LakeReader:
    """Reads tables of one format."""

    def __init__(self, lake: Path, jars: Path, table_format: str) -> None:
        self.jars = jars
        self.table_format = table_format
        settings = Spark(lake=f"file://{lake}", jars=jars, table_format=table_format)
        self._spark = None if table_format == "delta" else open_session(settings, Layout(settings.lake))

    def rows(self, mirror: Path) -> list[dict[str, Any]]:
        """Read the rows of a mirror, without the column `_seq`."""
        if not self._spark:
            return _read_delta(mirror)
        found = read_with_spark(self._spark, f"file://{mirror}", "SELECT * FROM t")
        return [{name: _plain(value) for name, value in row.items() if name != "_seq"} for row in found]

    def replay(self, lake: Path, name: TableName, rules: Sequence[Rule], random: Random) -> Differences | None:
        """Replay the change log of a table, which only lakes in Iceberg have a Spark session for."""
        return self._spark and replay(self._spark, Layout(f"file://{lake}"), name, rules, random)

    def parked_tables(self, lake: Path) -> dict[str, str]:
        """Return the tables that the sink has parked, with the reasons."""
        path = lake / "_databus" / "tables"
        if not path.exists():
            return {}
        query = "SELECT \"table\", reason FROM t WHERE state = 'parked'"
        if self._spark:
            return {row["table"]: row["reason"] for row in read_with_spark(self._spark, f"file://{path}", query)}
        batch = QueryBuilder().register("t", DeltaTable(path)).execute(query).read_all()
        names, reasons = (column.to_pylist() for column in batch.columns)
        return dict(zip(names, reasons, strict=True))


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value  # as a part of a key, it must be hashable


def _read_delta(mirror: Path) -> list[dict[str, Any]]:
    """Read the rows of a mirror, also of one with a widened column."""
    try:
        return read_mirror(mirror)
    except (DeltaError, OSError) as error:
        if _WIDENING not in str(error) and "TypeWidening" not in str(error):
            raise
    with TemporaryDirectory(dir=mirror.parent.parent) as folder:
        copy = Path(folder) / mirror.name
        shutil.copytree(mirror, copy, copy_function=os.link)
        log = copy / "_delta_log"
        for summary in {*log.glob("*checkpoint*"), *log.glob("*.crc")}:  # they have the features, too
            summary.unlink()
        for commit in log.glob("*.json"):
            actions = [json.loads(line) for line in commit.read_text().splitlines()]
            for features in (each["protocol"] for each in actions if "protocol" in each):
                for kind in ("readerFeatures", "writerFeatures"):
                    features[kind] = [name for name in features.get(kind, []) if not name.startswith(_WIDENING)]
            commit.unlink()  # it is the same file as the mirror's
            commit.write_text("".join(json.dumps(action) + "\n" for action in actions))
        return read_mirror(copy)
