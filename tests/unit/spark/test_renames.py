"""Which mirror has whose rows after a statement that renames tables."""

from databus_changes.tables import TableName
from databus_spark.renames import UNKNOWN, renames
from databus_spark.table_changes import Statement, TableChanges

SEQUENCE = "0000000000000007-0000000000"


def contents(query: str, *tables: str) -> dict[TableName, TableName | None]:
    statement = Statement(SEQUENCE, "alter", query, 1, "topic", 0, 5)
    names = [tuple(table.split(".")) for table in tables]
    found = renames({(schema, name): TableChanges([statement]) for schema, name in names})
    return {name: source for rename in found for name, (source, _) in rename.contents.items()}


def test_a_simple_rename() -> None:
    expected = {("shop", "a"): None, ("shop", "b"): ("shop", "a")}
    assert contents("RENAME TABLE a TO b", "shop.a", "shop.b") == expected
    assert contents("ALTER TABLE `shop`.a ADD x INT, RENAME TO b", "shop.a", "shop.b") == expected


def test_two_tables_swap_their_names() -> None:
    query = "RENAME TABLE a TO t, b TO a, t TO b"
    assert contents(query, "shop.a", "shop.b") == {("shop", "a"): ("shop", "b"), ("shop", "b"): ("shop", "a")}


def test_a_table_moves_to_another_schema() -> None:
    query = "RENAME TABLE a TO `other`.b"
    assert contents(query, "shop.a", "other.b") == {("shop", "a"): None, ("other", "b"): ("shop", "a")}


def test_a_table_without_a_message_under_its_old_name_brings_unknown_rows() -> None:
    assert contents("RENAME TABLE _t_gho TO t", "shop.t") == {("shop", "t"): UNKNOWN}


def test_an_alter_that_renames_only_a_column_is_no_rename() -> None:
    assert contents("ALTER TABLE t RENAME COLUMN a TO b", "shop.t") == {}
