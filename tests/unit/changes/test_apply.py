"""DDL whose text is not understood, or does not fit the known tables, is refused; its effect is never guessed."""

import pytest

from databus_changes.ddl.apply import SchemaChanges, apply_ddl
from databus_changes.ddl.dialect import Dialect
from databus_changes.ddl.statement import parse_statement
from databus_core.errors import CannotApply
from databus_core.events import Column, Table

MARIADB = Dialect(flavor="mariadb", integer_widths=True)
TABLES = {
    ("shop", "t"): Table(
        schema="shop",
        name="t",
        columns=(Column(name="a", type="int", raw_type="int(11)"), Column(name="b", type="int", raw_type="int(11)")),
        primary_key=(0,),
        charset="latin1",
    ),
}


def applied(statement: str, charsets: dict[str, str] | None = None, dialect: Dialect = MARIADB) -> SchemaChanges:
    charsets = {"shop": "utf8mb4"} if charsets is None else charsets
    return apply_ddl(parse_statement(statement, "shop"), TABLES, charsets, dialect)


@pytest.mark.parametrize(
    "statement",
    [
        # text that the parser does not understand
        "CREATE TABLE u (a VARCHAR2(3))",
        "CREATE TABLE u (a INT SPARKLING)",
        "CREATE TABLE u (a INT DEFAULT 1 + 1)",
        "CREATE TABLE u (a INT, PERIOD FOR p (a, b))",
        "CREATE TABLE u (a ENUM(0x61))",
        "CREATE TABLE u (a VARCHAR)",
        "ALTER TABLE t ADD c INT BESIDE b",
        "ALTER TABLE t ADD c INT b INT",
        "ALTER TABLE t FROBNICATE",
        "ALTER TABLE t CONVERT PARTITION p TO TABLE u",
        "RENAME TABLE t TO u v",
        # tables with columns that the text does not name
        "CREATE TABLE u (a INT) WITH SYSTEM VERSIONING",
        "ALTER TABLE t ADD SYSTEM VERSIONING",
        "CREATE TABLE u (a INT) SELECT 1",
        "CREATE TABLE u SELECT 1",
        # unknown tables
        "ALTER TABLE u ADD c INT",
        "RENAME TABLE u TO v",
        "CREATE TABLE v LIKE u",
        "CREATE INDEX i ON u (a)",
        # statements that do not fit the known table
        "ALTER TABLE t ADD a INT",
        "ALTER TABLE t DROP c",
        "ALTER TABLE t DROP a, DROP b",
        "ALTER TABLE t DROP a, MODIFY a INT",
        "ALTER TABLE t MODIFY c INT",
        "ALTER TABLE t ADD c INT AFTER d",
        "ALTER TABLE t ADD PRIMARY KEY (b)",
        "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (c)",
        # columns that become binary
        "ALTER TABLE t ADD c VARCHAR(9), CHARSET binary, CONVERT TO CHARACTER SET binary",
    ],
)
def test_a_statement_whose_effect_is_not_certain_is_refused(statement: str) -> None:
    with pytest.raises(CannotApply):
        applied(statement)


def test_names_without_quotes_may_begin_like_hexadecimal_and_binary_numbers() -> None:
    assert applied("CREATE TABLE 0xtab (0brand INT)").tables.keys() == {("shop", "0xtab")}


def test_an_unknown_default_character_set_is_not_guessed() -> None:
    for statement in ("CREATE TABLE u (a TEXT)", "ALTER TABLE t CHARACTER SET DEFAULT, ADD c CHAR(1)"):
        with pytest.raises(CannotApply, match="not known"):
            applied(statement, charsets={})
    assert applied("CREATE TABLE u (a TEXT) CHARSET sjis", charsets={}).tables.keys() == {("shop", "u")}
    assert applied("CREATE TABLE u (a INT)", charsets={}).tables.keys() == {("shop", "u")}


@pytest.mark.parametrize(("mode", "kind"), [(1, "REAL"), (1 << 9, "DATE"), (1 << 9, "BLOB"), (1 << 12, "TIMESTAMP")])
def test_a_type_that_the_sessions_sql_mode_redefines_is_not_guessed(mode: int, kind: str) -> None:
    for query in (f"CREATE TABLE u (a INT, b {kind})", f"ALTER TABLE t ADD c {kind}"):
        assert applied(query).tables
        with pytest.raises(CannotApply, match=f"sql_mode .* {kind}"):
            apply_ddl(parse_statement(query, "shop", sql_mode=mode), TABLES, {"shop": "utf8mb4"}, MARIADB)


def test_a_schema_has_by_default_the_character_set_of_the_session_that_creates_it() -> None:
    for create in ("CREATE DATABASE club", "SET STATEMENT character_set_server = latin1 FOR CREATE DATABASE club"):
        statement = parse_statement(create, "shop", server_charset="latin1")
        assert apply_ddl(statement, TABLES, {}, MARIADB).charsets == {"club": "latin1"}


def test_an_error_message_does_not_contain_literals() -> None:
    with pytest.raises(CannotApply) as refused:
        applied("ALTER TABLE t ADD c INT DEFAULT 'x' 'secret'")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "statement", ["CREATE VIEW v AS SELECT 1", "DROP VIEW v", "ALTER EVENT e ENABLE", "TRUNCATE TABLE t", "DROP USER u"]
)
def test_a_statement_that_defines_no_table_changes_none(statement: str) -> None:
    assert applied(statement) == SchemaChanges()


def test_table_names_are_not_case_sensitive_on_a_server_that_folds_them() -> None:
    folding = Dialect(flavor="mysql", integer_widths=False, folds_names=True)
    (table,) = applied("ALTER TABLE SHOP.T ADD C INT", dialect=folding).tables.values()
    assert table is not None
    assert [column.name for column in table.columns] == ["a", "b", "C"]
    dropped = applied("DROP DATABASE Shop", dialect=folding)
    assert (dropped.tables, dropped.charsets) == ({("shop", "t"): None}, {"shop": None})
    for statement in ("CREATE DATABASE Club CHARSET latin1", "ALTER DATABASE CLUB CHARSET latin1"):
        assert applied(statement, dialect=folding).charsets == {"club": "latin1"}


def test_with_explicit_defaults_for_timestamp_off_a_timestamp_without_null_is_not_null() -> None:
    old = Dialect(flavor="mysql", integer_widths=True, explicit_timestamps=False)
    (table,) = applied("CREATE TABLE u (a TIMESTAMP, b TIMESTAMP NULL, c INT)", dialect=old).tables.values()
    assert table is not None
    assert [column.nullable for column in table.columns] == [False, True, True]


@pytest.mark.parametrize(
    ("statement", "indexes"),
    [
        ("ALTER TABLE i DROP INDEX BY_A", {}),
        ("ALTER TABLE i RENAME INDEX BY_A TO x", {"x": ("a",)}),
        ("ALTER TABLE i ADD INDEX IF NOT EXISTS BY_A (b)", {"By_a": ("a",)}),
        ("CREATE INDEX IF NOT EXISTS BY_A ON i (b)", {"By_a": ("a",)}),
        ("CREATE OR REPLACE INDEX BY_A ON i (b)", {"BY_A": ("b",)}),
        ("DROP INDEX by_a ON i", {}),
        (
            "ALTER TABLE i ADD KEY B_2 (b), ADD KEY (b), ADD KEY (b)",
            {"By_a": ("a",), "B_2": ("b",), "b": ("b",), "b_3": ("b",)},
        ),
        ("CREATE VECTOR INDEX v ON i (b)", {"By_a": ("a",), "v": ("b",)}),
        ("ALTER TABLE i ADD VECTOR INDEX v (b) M=6 DISTANCE=cosine", {"By_a": ("a",), "v": ("b",)}),
        ("ALTER TABLE i ADD vector INT, ALTER COLUMN IF EXISTS z SET DEFAULT 5", {"By_a": ("a",)}),
    ],
)
def test_indexes_are_found_by_name_in_any_case(statement: str, indexes: dict[str, tuple[str, ...]]) -> None:
    tables = applied("CREATE TABLE i (a INT, b INT, KEY By_a (a))").tables
    (table,) = apply_ddl(parse_statement(statement, "shop"), tables, {}, MARIADB).tables.values()
    assert table is not None
    assert {index.name: index.columns for index in table.indexes} == indexes


def test_dropping_a_schema_drops_its_known_tables() -> None:
    changes = applied("DROP DATABASE IF EXISTS shop")
    assert (changes.tables, changes.charsets) == ({("shop", "t"): None}, {"shop": None})
    changes = applied("CREATE OR REPLACE DATABASE shop CHARSET latin1")
    assert (changes.tables, changes.charsets) == ({("shop", "t"): None}, {"shop": "latin1"})


def test_a_declared_type_is_kept_only_if_the_server_stores_another_one() -> None:
    statement = "CREATE TABLE u (a BOOL, b BOOLEAN, c TINYINT(1), d JSON)"
    mariadb, mysql = (
        applied(statement, dialect=Dialect(flavor=flavor, integer_widths=False)).tables["shop", "u"]
        for flavor in ("mariadb", "mysql")
    )
    assert mariadb is not None
    assert mysql is not None
    assert [column.declared for column in mariadb.columns] == ["BOOL", "BOOLEAN", "", "JSON"]
    assert [column.declared for column in mysql.columns] == ["BOOL", "BOOLEAN", "", ""]
