"""What an ALTER does to rows that exist: done as the database does it, or refused."""

import msgspec
import pytest

from databus_core.errors import CannotApply
from databus_core.events import Column, Table
from databus_core.settings.rules import Rule
from databus_spark.alter import keeps_values, row_change
from databus_spark.errors import TableParked
from databus_spark.published_change import published_change
from databus_spark.types import TypeOptions


def column(raw_type: str, name: str = "c", values: tuple[str, ...] = ()) -> Column:
    return Column(name=name, type="", raw_type=raw_type, values=values)


def table(*columns: str) -> Table:
    parts = (each.split(" ", 1) for each in columns)
    return Table(schema="shop", name="t", columns=tuple(column(kind, name) for name, kind in parts), primary_key=(0,))


NULL = "`?` is null"
OTHER_TEXT = "octet_length(`?`) > char_length(`?`)"
DATES_AS_TEXT = TypeOptions(zero_dates="string")
BEFORE = table("id int(11)", "a varchar(9)", "b int(11)")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("int(11)", "bigint(20)"),
        ("tinyint(3) unsigned", "int(10) unsigned"),
        ("int(11)", "int(11)"),
        ("varchar(9)", "varchar(10)"),
        ("varchar(9)", "text"),
        ("text", "longtext"),
        ("decimal(8,2)", "decimal(12,4)"),
        ("decimal(65,30)", "decimal(65,30)"),
        ("datetime(3)", "datetime(6)"),
        ("bit(1)", "bit(8)"),
        ("blob", "mediumblob"),
    ],
)
def test_a_larger_type_keeps_values(old: str, new: str) -> None:
    assert keeps_values(column(old), column(new), TypeOptions())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("bigint(20)", "int(11)"),
        ("int(11)", "int(10) unsigned"),
        ("varchar(10)", "varchar(9)"),
        ("text", "varchar(9)"),
        ("decimal(8,4)", "decimal(8,2)"),
        ("decimal(40,2)", "decimal(40,4)"),
        ("time", "time(3)"),
        ("datetime(6)", "datetime"),
        ("datetime", "timestamp"),
        ("binary(4)", "binary(5)"),
        ("varchar(9)", "int(11)"),
        ("char(9)", "varchar(9)"),
        ("float", "double"),
        ("text", "json"),
    ],
)
def test_any_other_type_may_change_values(old: str, new: str) -> None:
    assert not keeps_values(column(old), column(new), TypeOptions())


def test_labels_may_be_added() -> None:
    small, large = column("enum('a','b')", values=("a", "b")), column("enum('c','b','a')", values=("c", "b", "a"))
    assert keeps_values(small, large, TypeOptions())
    assert not keeps_values(large, small, TypeOptions())
    a_b, a_b_c, b_a = (column("set", values=tuple(labels)) for labels in ("ab", "abc", "ba"))
    assert keeps_values(a_b, a_b_c, TypeOptions())
    assert not keeps_values(a_b, b_a, TypeOptions()), "the labels of a value are written in another order"


def test_the_text_of_a_time_has_the_digits_of_its_type() -> None:
    assert not keeps_values(column("datetime(3)"), column("datetime(6)"), DATES_AS_TEXT)
    assert keeps_values(column("datetime(3)"), column("datetime(3)"), DATES_AS_TEXT)
    after = table("id int(11)", "a varchar(9)", "b int(11)", "n datetime(3)")
    query = "ALTER TABLE t ADD n datetime(3) DEFAULT '2021-02-03 04:05:06'"
    assert row_change(BEFORE, after, query, TypeOptions()).columns["n"].endswith(" as timestamp_ntz)")
    with pytest.raises(CannotApply, match=r"column n .*was added with a default"):
        row_change(BEFORE, after, query, DATES_AS_TEXT)
    exact = table("id int(11)", "a varchar(9)", "b int(11)", "n datetime")
    columns = row_change(BEFORE, exact, query.replace("(3)", ""), DATES_AS_TEXT).columns
    assert columns["n"] == "cast(cast(cast('2021-02-03 04:05:06' as binary) as string) as string)"


def test_columns_take_their_values_along() -> None:
    after = table("id int(11)", "b varchar(9)", "a int(11)", "n int(11)")
    change = row_change(
        BEFORE, after, "ALTER TABLE t RENAME COLUMN a TO b, CHANGE b a INT, ADD n INT DEFAULT -5", TypeOptions()
    )
    assert change.columns == {
        "id": "cast(`id` as bigint)",
        "b": "cast(`a` as string)",
        "a": "cast(`b` as bigint)",
        "n": "cast(try_cast(cast(cast('-5' as binary) as string) as bigint) as bigint)",
    }
    assert not change.only_schema


def test_a_column_that_is_dropped_and_added_again_loses_its_values() -> None:
    change = row_change(BEFORE, BEFORE, "ALTER TABLE t DROP b, ADD b INT", TypeOptions())
    assert change.columns["b"] == "cast(null as bigint)"


def test_columns_at_the_end_and_wider_types_change_only_the_schema() -> None:
    after = table("id bigint(20)", "a varchar(99)", "b int(11)", "n text", "m date")
    query = "ALTER TABLE t MODIFY id bigint, MODIFY a varchar(99), ADD COLUMN (n text, m date DEFAULT NULL)"
    assert row_change(BEFORE, after, query, TypeOptions()).only_schema
    first = table("n text", "id int(11)", "a varchar(9)", "b int(11)")
    assert not row_change(BEFORE, first, "ALTER TABLE t ADD n text FIRST", TypeOptions()).only_schema


@pytest.mark.parametrize(
    ("query", "doubts"),
    [
        ("MODIFY b INT NOT NULL, CHANGE a a varchar(9) CHARACTER SET utf8mb4 NOT NULL", {"a": NULL, "b": NULL}),
        ("DROP PRIMARY KEY, ADD PRIMARY KEY (b)", {"b": NULL}),
        ("MODIFY b INT AUTO_INCREMENT, ADD UNIQUE (b)", {"b": f"{NULL} or `b` = 0"}),
        ("CONVERT TO CHARACTER SET latin1", {"a": OTHER_TEXT}),
        ("CONVERT TO CHARACTER SET utf8", {"a": OTHER_TEXT}),
        ("CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", {}),
        ("MODIFY a varchar(9) CHARACTER SET latin1", {"a": OTHER_TEXT}),
        ("MODIFY a varchar(9)", {"a": OTHER_TEXT}),  # the default character set of the table, which is not known
        ("MODIFY a varchar(9) COLLATE utf8mb4_bin", {}),
        ("DEFAULT CHARACTER SET latin1", {}),
    ],
)
def test_rows_that_a_statement_may_have_changed_can_be_found(query: str, doubts: dict[str, str]) -> None:
    after = msgspec.structs.replace(BEFORE, primary_key=(2,)) if "PRIMARY" in query else BEFORE
    change = row_change(BEFORE, after, f"ALTER TABLE t {query}", TypeOptions())
    assert change.doubts == {name: text.replace("`?`", f"`{name}`") for name, text in doubts.items()}
    assert change.is_identity == (not doubts)


def test_a_text_type_that_may_be_too_small_for_other_characters_is_in_doubt() -> None:
    before = table("id int(11)", "a text")
    for statement, certain in {
        "MODIFY a text CHARACTER SET utf8mb4": False,  # an é that was one byte has two
        "MODIFY a longtext CHARACTER SET utf8mb4": True,
        "CONVERT TO CHARACTER SET utf8mb4": True,  # the type becomes larger if that is needed
    }.items():
        after = table("id int(11)", f"a {'longtext' if 'long' in statement else 'text'}")
        change = row_change(before, after, f"ALTER TABLE t {statement}", TypeOptions())
        assert (change.doubts == {}) is certain, statement


@pytest.mark.parametrize("statement", ["DROP PRIMARY KEY, ADD n INT, ADD PRIMARY KEY (id, n)", "ADD n INT PRIMARY KEY"])
def test_a_new_column_of_the_key_is_not_null(statement: str) -> None:
    after = msgspec.structs.replace(table("id int(11)", "a varchar(9)", "b int(11)", "n int(11)"), primary_key=(0, 3))
    assert row_change(BEFORE, after, f"ALTER TABLE t {statement}", TypeOptions()).columns["n"] == "cast(0 as bigint)"


@pytest.mark.parametrize(
    ("definition", "value"),
    [
        ("varchar(9) NOT NULL", "''"),
        ("decimal(8,2) NOT NULL", "0"),
        ("decimal(8,2) DEFAULT 1.005", "try_cast(cast(cast('1.005' as binary) as string) as decimal(8,2))"),
        ("varchar(9) DEFAULT 'it''s'", "cast(cast('it\\'s' as binary) as string)"),
        ("varchar(9) DEFAULT NULL", "null"),
        ("char(5) DEFAULT 'x '", "cast(cast('x' as binary) as string)"),
        ("varchar(9) DEFAULT -5.50", "cast(cast('-5.50' as binary) as string)"),
        (
            "datetime(3) DEFAULT '2020-01-02 03:04:05.678'",
            "try_cast(cast(cast('2020-01-02 03:04:05.678' as binary) as string) as timestamp_ntz)",
        ),
    ],
)
def test_rows_that_exist_have_the_default_of_a_new_column(definition: str, value: str) -> None:
    kind = definition.split(" ", maxsplit=1)[0]
    after = table("id int(11)", "a varchar(9)", "b int(11)", f"n {kind}")
    columns = row_change(BEFORE, after, f"ALTER TABLE shop.t ADD n {definition}", TypeOptions()).columns
    assert columns["n"].startswith(f"cast({value} as ")


@pytest.mark.parametrize(
    "definition",
    [
        "datetime DEFAULT CURRENT_TIMESTAMP",
        "datetime(3) DEFAULT '2020-01-02 03:04:05.6789'",
        "varchar(36) DEFAULT (uuid())",
        "int AS (id + 1)",
        "timestamp NOT NULL",
        "date NOT NULL",
        "enum('a') DEFAULT 'a'",
        r"varchar(9) DEFAULT 'a\\b'",
        "varchar(9) DEFAULT _latin1'a'",
        "bigint AUTO_INCREMENT",
        "float(7,2) DEFAULT 0.126",
        "decimal(40,2) NOT NULL",
        "varchar(9) DEFAULT 1e3",
        "varchar(9) DEFAULT 007",
        "varchar(3) DEFAULT 'abc  '",
    ],
)
def test_a_default_that_the_text_does_not_tell_is_refused(definition: str) -> None:
    after = table("id int(11)", "a varchar(9)", "b int(11)", f"n {definition.split(' ', maxsplit=1)[0]}")
    with pytest.raises(CannotApply, match=r"column n .*was added"):
        row_change(BEFORE, after, f"ALTER TABLE t ADD n {definition}", TypeOptions())


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("ALTER TABLE t MODIFY a varchar(5)", r"column a changes from varchar\(9\) to varchar\(5\)"),
        ("ALTER TABLE t ENGINE=InnoDB", "it is not certain where column n comes from"),
        ("ALTER TABLE t FROBNICATE", "FROBNICATE .* is not understood"),
        ("ALTER TABLE t DROP PARTITION p0", "it may have removed or replaced rows"),
        ("ALTER TABLE t TRUNCATE PARTITION p0", "it may have removed or replaced rows"),
        ("ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE o", "it may have removed or replaced rows"),
        ("ALTER TABLE t IMPORT TABLESPACE", "it may have removed or replaced rows"),
        ("ALTER IGNORE TABLE t ADD UNIQUE (a)", "it may have removed or replaced rows"),
        ("ALTER TABLE t /*M! ADD n int DEFAULT 5 */", "a comment that only MariaDB executes"),
        ("ALTER TABLE t CONVERT TO CHARACTER SET ucs2", "column a is converted to ucs2"),
        ("ALTER TABLE t CONVERT TO CHARACTER SET DEFAULT", "the character set of the schema is not known"),
    ],
)
def test_a_statement_that_does_not_explain_the_columns_is_refused(query: str, reason: str) -> None:
    after = table("id int(11)", "n int") if "ENGINE" in query else table("id int(11)", "a varchar(5)", "b int(11)")
    after = BEFORE if "CONVERT" in query or ("ENGINE" not in query and "MODIFY" not in query) else after
    with pytest.raises(CannotApply, match=reason):
        row_change(BEFORE, after, query, TypeOptions())


RULES = [
    Rule(match=["shop.mailed"], rename={"email": "mail"}),
    Rule(match=["shop.hashed"], hash=["mail*"]),
    Rule(match=["shop.narrow"], columns={"exclude": ["secret"]}),
]


def named(name: str, *columns: str) -> Table:
    return msgspec.structs.replace(table(*columns), name=name)


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("mailed", "DROP COLUMN email, ADD COLUMN email varchar(20) DEFAULT 'x'"),
        ("hashed", "ADD mail_alt varchar(64) DEFAULT 'none'"),
        ("hashed", "MODIFY mailed_at datetime(3)"),
        ("hashed", "CONVERT TO CHARACTER SET utf8mb4"),
    ],
)
def test_the_text_of_a_statement_does_not_fit_columns_that_a_rule_changes(name: str, query: str) -> None:
    before = named(name, "id int(11)", "mail char(64)")
    with pytest.raises(TableParked, match=r"a rule of publisher\.routes"):
        published_change(before, before, f"ALTER TABLE {name} {query}", TypeOptions(), RULES)


@pytest.mark.parametrize("query", ["ADD INDEX (email)", "COMMENT 'new'", "ENGINE=InnoDB", "REMOVE PARTITIONING"])
def test_a_statement_that_concerns_no_column_changes_no_row_whatever_a_rule_does(query: str) -> None:
    before = named("mailed", "id int(11)", "mail char(64)")
    assert published_change(before, before, f"ALTER TABLE mailed {query}", TypeOptions(), RULES).is_identity


def test_a_table_that_gets_the_name_of_another_rule_has_other_values() -> None:
    hashed, plain, narrow = (named(name, "id int(11)", "mail char(64)") for name in ("hashed", "plain", "narrow"))
    with pytest.raises(TableParked, match=r"a rule of publisher\.routes"):
        published_change(hashed, plain, "RENAME TABLE hashed TO plain", TypeOptions(), RULES)
    assert published_change(narrow, plain, "RENAME TABLE narrow TO plain", TypeOptions(), RULES).is_identity
    copy = "RENAME TABLE hashed TO hashed_2"
    renamed = msgspec.structs.replace(hashed, name="hashed_2")
    pattern = [Rule(match=["shop.hashed*"], hash=["mail"])]
    assert published_change(hashed, renamed, copy, TypeOptions(), pattern).is_identity
