"""Turns the publisher's dead letters into entries of the change log, so that the sink parks their tables."""

import re
from collections.abc import Iterable

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from databus_core.settings.rules import DEFAULT_OUTPUT
from databus_spark.messages import header
from databus_spark.sequences import last_of
from databus_spark.types import literal

#: reasons with which the publisher parks the whole table
_PARKED = "'parked', 'skipped'"


def decode_dead_letters(letters: DataFrame, tables: Iterable[str], after: int, last: int) -> DataFrame:
    """Decode records of the dead-letter topic, read with their headers, to entries with the action `invalid`.

    `after`, `last` and the columns are those of `databus_spark.messages.decode_records`. Only letters are kept whose
    table matches one of the patterns `tables`, and whose change the lake misses. The value stays in the dead letter.
    """
    full_name = f"concat({header('schema')}, '.', {header('table')})"
    belongs = " or ".join(f"{full_name} like {literal(_like(pattern))}" for pattern in tables)
    sequence = f"format_string('%016d-%010d', cast({header('transaction')} as bigint), cast({header('row')} as bigint))"
    return (
        letters.where(f"{header('reason')} not in ({_PARKED}) and {header('table')} <> '' and ({belongs})")
        .where(f"{header('output')} = '{DEFAULT_OUTPUT}' and {header('format')} = 'databus'")
        .withColumn("_seq", sql.expr(sequence))
        .selectExpr(
            # one that comes late must not be overlooked
            f"if(_seq > '{last_of(after)}', _seq, '{last_of(last)}') as _seq",
            f"{header('schema')} as _schema",
            f"{header('table')} as _table",
            "'invalid' as _action",
            "0 as _row",
            f"concat('it is a dead letter: ', {header('error')}) as _query",
            "array(key, cast(null as binary)) as cells",
            "cast(null as bigint) as _version",
            "cast(null as string) as _definition",
            f"{header('file')} as _file",
            f"cast({header('end')} as bigint) as _position",
            "topic as _topic",
            "partition as _partition",
            "offset as _offset",
            "timestamp as _time",
            "cast(timestamp as date) as _day",
        )
    )


def _like(pattern: str) -> str:
    """Turn a pattern with `*` and `?` into one of SQL's LIKE."""
    return re.sub(r"[\\%_]", r"\\\g<0>", pattern).replace("*", "%").replace("?", "_")
