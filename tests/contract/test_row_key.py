"""The key by which a server identifies rows is the same in table maps, in information_schema and by the statements."""

import pytest
from asyncmy.errors import MySQLError

from common.binlog_rows import read_rows
from common.connections import Execute
from databus_binlog.session import Session
from databus_changes.catalog import read_tables
from databus_changes.ddl.apply import apply_ddl
from databus_changes.ddl.dialect import dialect_of
from databus_changes.ddl.statement import parse_statement
from databus_changes.table_maps import table_of
from devstack import Server

#: columns and keys of a table, and the statements that alter it
TABLES: dict[str, list[str]] = {
    # a primary key, whatever else there is
    "primary": ["a INT NOT NULL UNIQUE, b INT PRIMARY KEY"],
    "prefix_primary": ["a VARCHAR(20) NOT NULL, b INT NOT NULL UNIQUE, PRIMARY KEY (a(5))"],
    "later": ["a INT NOT NULL, b INT NOT NULL, UNIQUE (a)", "ALTER TABLE {} ADD PRIMARY KEY (b)"],
    "promoted": ["a INT NOT NULL, UNIQUE k (a)", "ALTER TABLE {} ADD PRIMARY KEY (a)"],
    "demoted": ["a INT NOT NULL, b INT NOT NULL PRIMARY KEY, UNIQUE (a)", "ALTER TABLE {} DROP PRIMARY KEY"],
    # several unique keys: the first one in the statement, if no column is nullable
    "two": ["a INT NOT NULL, b INT NOT NULL, c INT, UNIQUE z (b, a), UNIQUE y (a), KEY (c)"],
    "same_columns": ["a INT NOT NULL, b INT NOT NULL, UNIQUE z (b, a), UNIQUE y (a, b)"],
    "clause_first": ["a INT NOT NULL, UNIQUE u (a), b INT NOT NULL UNIQUE"],
    "attribute_first": ["a INT NOT NULL, b INT NOT NULL UNIQUE, UNIQUE u (a)"],
    "plain": ["a INT NOT NULL, KEY (a)"],
    "plain_first": ["a INT NOT NULL, b INT NOT NULL, KEY z (b), UNIQUE y (a)"],
    "serial": ["a INT NOT NULL, b SERIAL, UNIQUE (a)"],
    "nullable": ["a INT, b INT NOT NULL, UNIQUE (a, b)"],
    "nullable_first": ["a INT, b INT NOT NULL, UNIQUE x (a, b), UNIQUE y (b)"],
    # what a server does not use
    "prefix": ["a VARCHAR(20) NOT NULL, UNIQUE (a(5))"],
    "prefix_first": ["a VARCHAR(20) NOT NULL, b INT NOT NULL, UNIQUE x (b, a(5)), UNIQUE y (b, a)"],
    "whole_prefix": ["b TINYBLOB NOT NULL, UNIQUE (b(255))"],
    "expression": ["a INT NOT NULL, b INT NOT NULL, UNIQUE k ((a + 1)), UNIQUE l (b)"],
    "virtual": ["a INT NOT NULL, v INT AS (a + 1) VIRTUAL NOT NULL UNIQUE"],
    "stored": ["a INT NOT NULL, v INT AS (a + 1) STORED NOT NULL UNIQUE"],
    "hashed": ["a TEXT NOT NULL, b INT NOT NULL, UNIQUE x (a), UNIQUE y (b)"],
    "too_long": ["a VARCHAR(768) NOT NULL, b VARCHAR(9) NOT NULL, UNIQUE (a, b)"],
    "longest": ["a VARCHAR(768) NOT NULL, UNIQUE (a)"],
    "in_memory": ["a INT NOT NULL, b INT NOT NULL, UNIQUE z (b), UNIQUE y (a)", "ALTER TABLE {} ENGINE=MEMORY"],
    # statements that change which key it is
    "not_null": ["a INT, b INT NOT NULL, UNIQUE k (a), UNIQUE l (b)", "ALTER TABLE {} MODIFY a INT NOT NULL"],
    "only_not_null": ["a INT, UNIQUE k (a)", "ALTER TABLE {} MODIFY a INT NOT NULL"],
    "null": ["a INT NOT NULL, b INT NOT NULL, UNIQUE k (a), UNIQUE l (b)", "ALTER TABLE {} MODIFY a INT"],
    "null_again": [
        "a INT NOT NULL, b INT NOT NULL, UNIQUE k (a), UNIQUE l (b)",
        "ALTER TABLE {} MODIFY a INT",
        "ALTER TABLE {} MODIFY a INT NOT NULL",
    ],
    "created": ["a INT NOT NULL", "CREATE UNIQUE INDEX k ON {} (a)"],
    "added": ["a INT NOT NULL, b INT NOT NULL, UNIQUE k (a)", "CREATE UNIQUE INDEX b ON {} (b)"],
    "added_prefix": ["a VARCHAR(9) NOT NULL, b INT NOT NULL", "CREATE UNIQUE INDEX b ON {} (a(2), b)"],
    "added_later": ["z INT", "ALTER TABLE {} ADD UNIQUE u (a), ADD a INT NOT NULL, ADD b INT NOT NULL UNIQUE"],
    "dropped": [
        "a INT NOT NULL, b INT NOT NULL, c INT NOT NULL, UNIQUE z (a), UNIQUE y (c), UNIQUE x (b)",
        "ALTER TABLE {} DROP INDEX Z",
    ],
    "replaced": [
        "a INT NOT NULL, b INT NOT NULL, UNIQUE k (a), UNIQUE l (b)",
        "ALTER TABLE {} DROP KEY k, ADD UNIQUE k (a)",
    ],
    "renamed": [
        "a INT NOT NULL, b INT NOT NULL, UNIQUE k (a), UNIQUE l (b)",
        "ALTER TABLE {} RENAME INDEX k TO zz, CHANGE a c INT NOT NULL",
    ],
    "without_column": [
        "a INT NOT NULL, b INT NOT NULL, c INT NOT NULL, UNIQUE z (a, b), UNIQUE y (c)",
        "ALTER TABLE {} DROP COLUMN a",
    ],
}  # fmt: skip
#: the server refuses these
REFUSED = {
    "mariadb": {"expression", "virtual", "stored", "without_column"},
    "mysql": {"hashed", "too_long"},
}


@pytest.mark.parametrize("source", ["mariadb", "mysql"], indirect=True)
async def test_each_source_of_a_definition_names_the_key_that_the_server_uses(
    source: Server, schema: str, execute: Execute, queries: Session
) -> None:
    dialect = await dialect_of(queries)
    applied, refused = {}, set()
    start = await queries.current_position()
    for key, (columns, *changes) in TABLES.items():
        name = f"t_{key}"
        try:
            for statement in (f"CREATE TABLE {name} ({columns})", *(text.format(name) for text in changes)):
                await execute(statement)
                parsed = parse_statement(statement, schema)
                applied |= apply_ddl(parsed, applied, {schema: "utf8mb4"}, dialect).tables
        except MySQLError:
            refused.add(key)
    listed = {table.name: table for table in await read_tables(queries, schema)}
    for table in listed.values():
        filled = [column for column in table.columns if not column.generated]
        names, values = (", ".join(texts) for texts in ([column.name for column in filled], ["1"] * len(filled)))
        await execute(f"INSERT INTO {table.name} ({names}) VALUES ({values})")
    logged = {table_map.name: table_map for table_map, _ in await read_rows(source, start, schema)}
    assert refused == REFUSED[source.kind]
    for name, table in listed.items():
        expected = logged[name].key
        assert table.row_key == expected, name
        assert table_of(logged[name]).key_assumed or table.primary_key == expected, name
        if name != "t_whole_prefix":  # the statement does not say how long a BLOB is
            by_statements = applied[schema, name]
            assert (by_statements.row_key, by_statements.primary_key) == (expected, table.primary_key), name
