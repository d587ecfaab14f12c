"""Row images of any definition of a table, turned into those of one definition: columns by name.

A column that the other definition lacks becomes NULL, and one that only the other definition has is left out. A query
fails at images whose cells would become other values: of other types, or with another key.
"""

from collections.abc import Iterable

from pyspark.sql import DataFrame

from databus_core.definitions import key_columns
from databus_core.events import Table
from databus_spark.types import TypeOptions, converts, literal

_DEFINITION = (
    "Columns array<struct<Name: string, RawType: string, EnumValues: array<string>, SetValues: array<string>>>, "
    "PKColumns array<int>"
)
#: SQL of the start of an error: which record it is about
PLACE = "'databus: topic ', _topic, ', partition ', _partition, ', offset ', _offset"
#: what to do at a record of another definition
ADVICE = "restart the query, so that it uses the new definition; records that are older need a query that ends before"
_IMAGES = f"""
    case
        when action = 'invalid' then raise_error(concat({PLACE}, ' cannot be used: ', _query))
        when images is null then images
        when _definition is null then raise_error(concat({PLACE}, ': the definition of the table is missing'))
        when _other is null then images
        when _misfits = '' then transform(images, image -> transform(_indexes, i -> get(image, i)))
        else raise_error(concat({PLACE}, ': the table has another definition of ', _misfits, ': {ADVICE}'))
    end
"""


def align(messages: DataFrame, table: Table, definition: str, types: TypeOptions) -> DataFrame:
    """Bring the cells in `images` into the order of a table, whose `definition` is as in messages.

    `messages` are those of `databus_spark.messages.decode_messages`. A query fails at one that cannot be used.
    """
    other = f"if(_definition = {literal(definition)}, null, from_json(_definition, '{_DEFINITION}'))"
    names = texts(column.name.lower() for column in table.columns)
    theirs = "get(_other.Columns, get(_indexes, {}))"
    checks = {
        column.name: f"{theirs.format(index)} is null or {converts(column, theirs.format(index), types)}"
        for index, column in enumerate(table.columns)
    }
    key = texts(name.lower() for name in key_columns(table))
    checks["the primary key"] = (
        f"transform(coalesce(_other.PKColumns, cast(array() as array<int>)), i -> get(_names, i)) = {key}"
    )
    misfits = ", ".join(f"if({fits}, null, {literal(what)})" for what, fits in checks.items())
    return (
        messages.selectExpr("*", f"{other} as _other")
        .selectExpr("*", "transform(_other.Columns, c -> lower(c.Name)) as _names")
        .selectExpr("*", f"transform({names}, n -> cast(array_position(_names, n) as int) - 1) as _indexes")
        .selectExpr("*", f"if(_other is null, null, array_join(array({misfits}), ', ')) as _misfits")
        .selectExpr(*(column for column in messages.columns if column != "images"), f"{_IMAGES} as images")
    )


def texts(values: Iterable[str]) -> str:
    """Build the SQL of an array of texts, which may be empty."""
    return f"cast(array({', '.join(map(literal, values))}) as array<string>)"
