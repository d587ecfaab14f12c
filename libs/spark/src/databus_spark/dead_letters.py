"""Dead letters of the publisher, as entries of a change log: a mirror must not miss a change without a word."""

from pyspark.sql import DataFrame

from databus import names
from databus.settings.rules import DEFAULT_OUTPUT
from databus_spark.messages import header

#: reasons with which the publisher parks the whole table, and loads it again
_PARKED = "'parked', 'skipped'"


def decode_dead_letters(letters: DataFrame) -> DataFrame:
    """Decode records of the dead-letter topic, read with their headers, to entries with the action `invalid`.

    The columns are those of `databus_spark.messages.decode_records`. Tombstones, and what is not about a change that
    the lake misses, are left out. The value stays in the dead letter.
    """
    sequence = header(names.SEQUENCE_HEADER)
    missing = (
        f"{header('reason')} not in ({_PARKED}) and {header('output')} = '{DEFAULT_OUTPUT}' "
        f"and {header('format')} = 'databus' and {header('table')} <> '' and {sequence} is not null"
    )
    return letters.where(missing).selectExpr(
        f"{sequence} as _seq",
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
