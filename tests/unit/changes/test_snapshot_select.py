"""The query that reads a table's rows."""

from databus_binlog.row_batch import Conversion
from databus_changes.snapshot.select import select
from databus_core.events import Column, Table


def table(*columns: Column) -> Table:
    return Table(schema="a`b", name="c.d", columns=columns, primary_key=(0,))


def test_identifiers_are_quoted_and_rows_are_selected_in_primary_key_order() -> None:
    strange = table(Column(name="`", type="int", raw_type="int"))
    assert select(strange).sql == "SELECT ```` FROM `a``b`.`c.d` FORCE INDEX (PRIMARY) ORDER BY ````"


def test_each_column_has_a_conversion() -> None:
    types = [
        ("int", "int(11)"),
        ("float", "float(7,3)"),
        ("double", "double"),
        ("year", "year(2)"),
        ("year", "year(4)"),
    ]
    columns = [Column(name=f"c{number}", type=kind, raw_type=raw) for number, (kind, raw) in enumerate(types)]
    assert select(table(*columns)).conversions == (
        Conversion.NONE,
        Conversion.FLOAT,
        Conversion.DOUBLE,
        Conversion.YEAR2,
        Conversion.NONE,
    )
