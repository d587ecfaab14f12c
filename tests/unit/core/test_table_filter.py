"""Which tables are selected by `schema.table` patterns, and which schemas may have such tables."""

import pytest

from databus_core.table_filter import TableFilter

FILTER = TableFilter(["shop.*", "stock_?.item*"], ["shop.tmp_*", "shop.audit", "stock_x.*"])


@pytest.mark.parametrize(
    ("table", "selected"),
    [
        (("shop", "orders"), True),
        (("shop", "tmp_1"), False),
        (("shop", "audit"), False),
        (("Shop", "orders"), False),
        (("stock_1", "items"), True),
        (("stock_1", "orders"), False),
        (("stock_12", "items"), False),
        (("stock_x", "items"), False),
    ],
)
def test_a_table_is_selected_if_it_is_included_and_not_excluded(table: tuple[str, str], selected: bool) -> None:
    assert FILTER.matches(*table) is selected


def test_a_schema_may_have_selected_tables_unless_all_are_excluded_or_none_is_included() -> None:
    schemas = ["shop", "stock_1", "stock_x", "stock", "other"]
    assert [schema for schema in schemas if FILTER.may_match_in(schema)] == ["shop", "stock_1"]


def test_a_text_counts_as_naming_a_schema_if_it_contains_a_matching_name() -> None:
    texts = ["ALTER TABLE `shop`.orders", "DROP TABLE stock_7.x", "DROP TABLE orders"]
    assert [FILTER.may_be_named_in(text) for text in texts] == [True, True, False]


def test_patterns_that_match_no_table_are_listed() -> None:
    patterns = TableFilter(["shop.*", "shop.orders", "stock.*"])
    assert patterns.unmatched([("shop", "orders"), ("other", "t")]) == ["stock.*"]
    assert patterns.unmatched([]) == ["shop.*", "shop.orders", "stock.*"]


def test_brackets_stand_for_themselves() -> None:
    patterns = TableFilter(["s[ab].t[0-9]*"])
    assert patterns.matches("s[ab]", "t[0-9]x")
    assert not patterns.matches("sa", "t1")


@pytest.mark.parametrize("pattern", ["a.*", "a*.*", "a?b.t", "*.t"])
@pytest.mark.parametrize("schema", ["a", "a.b", "b"])
def test_a_dot_in_a_name_does_not_separate_schema_and_table(pattern: str, schema: str) -> None:
    selected = TableFilter([pattern])
    assert selected.matches(schema, "t") == selected.may_match_in(schema)
