"""A batch that changes 10,000 rows of a mirror, and of one with 16 times as many rows: the last rows, and random ones.

The mirrors are made as from a dump, in the order of their keys, and each batch is in the change log. Measured is what
the sink does with a mirror then, on local[2].
"""

import argparse

from pyspark.sql import SparkSession
from report import Result, report
from rich.progress import track
from served import CONSOLE
from spark_session import LAKE, measured, session

from databus_core.definitions import encode_definition
from databus_core.events import Column, Table
from databus_spark.changelog import COLUMNS, ChangeLog, LogState
from databus_spark.layout import Layout
from databus_spark.mirror import Mirror
from databus_spark.mirror_state import MirrorState
from databus_spark.sequences import last_of
from databus_spark.types import TypeOptions

_CHANGED = 10_000
_FACTOR = 16
#: goal: times as long for the last rows of the larger mirror
_GOAL = 1.3
#: rows of a file of the mirror
_FILE_ROWS = 250_000
_WARM_UP = 2
_NAME = ("bench", "t")
_TABLE = Table(
    schema="bench",
    name="t",
    columns=(Column(name="id", type="", raw_type="bigint"), Column(name="v", type="", raw_type="varchar(80)")),
    primary_key=(0,),
)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=1_000_000, help="of the smaller mirror")
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--table-format", choices=["delta", "iceberg"], default="delta")
    chosen = options.parse_args()
    with session(chosen.table_format) as spark:
        sizes = {"1×": chosen.rows, f"{_FACTOR}×": chosen.rows * _FACTOR}
        lakes = {name: Lake(spark, name, rows) for name, rows in sizes.items()}
        results = [each for keys in ("last", "random") for each in _compare(lakes, keys, chosen.runs)]
    report(f"spark-merge-{chosen.table_format}", results)


class Lake:
    """A change log, and a mirror of a table."""

    def __init__(self, spark: SparkSession, name: str, rows: int) -> None:
        layout = Layout(f"{LAKE.as_uri()}/{name}")
        self._spark, self._rows, self._transaction = spark, rows, 0
        self._log = ChangeLog(spark, layout.changes)
        self._log.start({})
        own = spark.newSession()  # as the sink does
        self._mirror = Mirror(own, self._log, _NAME, layout.mirror(*_NAME), TypeOptions(), ())
        ids = own.range(0, rows, 1, max(2, rows // _FILE_ROWS))
        self._mirror.load(ids.selectExpr(f"{_cells(0)} as cells"), _TABLE, MirrorState(0, encode_definition(_TABLE)))

    def change(self, keys: str) -> float:
        """Change rows, and return the seconds that the mirror takes to follow."""
        self._transaction += 1
        number = self._transaction
        numbers = self._spark.range(_CHANGED)
        ids = {"last": f"{self._rows} - 1 - id as id", "random": f"pmod(xxhash64(id, {number}), {self._rows}) as id"}
        values = {
            "_seq": f"'{last_of(number)}'",
            "_schema": "'bench'",
            "_table": "'t'",
            "_action": "'update_after'",
            "_row": "0",
            "cells": _cells(number),
            "_version": "1L",
            "_definition": f"'{encode_definition(_TABLE)}'",
            "_topic": "'t'",
            "_partition": "0",
            "_offset": "id",
            "_day": "current_date()",
        }
        columns = [f"cast({values.get(name, 'null')} as {kind}) as {name}" for name, kind in COLUMNS.items()]
        self._log.append(numbers.selectExpr(ids[keys]).selectExpr(*columns), LogState(number), keep=True)
        changes = self._log.changes(number - 1, number)[_NAME]
        with measured(self._spark) as cost:
            self._mirror.advance(changes, number)
        return cost.wall

    def verify(self) -> None:
        """Fail the bench unless the mirror has all its rows, and the last batch's change of the last row."""
        rows, newest = self._mirror.table.read().selectExpr("count(distinct id)", "max(_seq)").collect()[0]
        if (rows, newest) != (self._rows, last_of(self._transaction)):
            raise SystemExit(f"bench: the mirror has {rows} rows up to {newest}")


def _cells(number: int) -> str:
    return f"array(binary(cast(id as string)), binary(concat('{number}-', id, repeat('x', 60))))"


def _compare(lakes: dict[str, Lake], keys: str, runs: int) -> list[Result]:
    """Change both mirrors by turns."""
    seconds: dict[str, list[float]] = {name: [] for name in lakes}
    for number in track(range(_WARM_UP + runs), f"changing {keys} rows", console=CONSOLE):
        for name, lake in lakes.items():
            taken = lake.change(keys)
            if number >= _WARM_UP:
                seconds[name].append(taken)
    for lake in lakes.values():
        lake.verify()
    small, large = seconds.values()
    ratios = [many / few for few, many in zip(small, large, strict=True)]
    goal = _GOAL if keys == "last" else None
    return [
        *(Result(f"{keys} rows of the {name} mirror", "s", taken) for name, taken in seconds.items()),
        Result(f"{keys} rows", "times as long", ratios, "mirror of 1×", goal, at_most=True),
    ]


if __name__ == "__main__":
    main()
