"""Routing rules: which rule applies, what a filter publishes, and how invalid rules are rejected."""

import hmac
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from databus_core.errors import InvalidSettings
from databus_core.events import Action, Column, Index, Row, Table
from databus_core.settings import Publisher, Settings, load
from databus_core.settings.rules import Rule, default_rule, first_matches
from databus_messages.routing.filter import Filter, Run, filter_of

ORDERS = Table(
    schema="shop",
    name="orders",
    columns=(
        Column(name="id", type="int", raw_type="int", auto_increment=True),
        Column(name="email", type="varchar", raw_type="varchar(99)", charset="latin1", nullable=True),
        Column(name="status", type="enum", raw_type="enum('new','paid')", values=("new", "paid")),
        Column(name="flags", type="set", raw_type="set('a','b')", values=("a", "b")),
        Column(name="total", type="decimal", raw_type="decimal(10,2)"),
        Column(name="photo", type="blob", raw_type="blob"),
    ),
    primary_key=(0,),
    indexes=(Index("PRIMARY", ("id",)), Index("who", ("email", "status"))),
)
ROW: Row = [b"1", "größe@x".encode(), b"2", b"3", b"5.00", b"\x00\xff\x01"]


def rule(**settings: Any) -> Rule:
    return Rule.model_validate({"match": ["*.*"]} | settings)


def orders_filter(**settings: Any) -> Filter:
    return Filter(rule(**settings), ORDERS, b"pepper")


def test_the_first_matching_rule_of_each_output_applies() -> None:
    publisher = Publisher.model_validate(
        {
            "format": "own",
            "options": {"x": 0},
            "topic": "t",
            "routes": [
                {"match": ["shop.tmp_*"], "drop": True},
                {"match": ["shop.*"], "exclude": ["shop.log"], "topic": "mine"},
                {"match": ["shop.*"], "output": "audit", "format": "other", "options": {"x": 1}},
                {"match": ["*.*"], "options": {"y": 2}},
            ],
        }
    )
    numbers = {
        name: [found.number for found in first_matches(publisher.rules, "shop", name)]
        for name in ("orders", "log", "tmp_1")
    }
    assert numbers == {"orders": [2, 3], "log": [3, 4], "tmp_1": [3]}
    assert default_rule(publisher.rules, "shop", "tmp_1") is None
    assert [(each.format, each.topic, each.options) for each in publisher.rules[1:]] == [
        ("own", "mine", {"x": 0}), ("other", "t", {"x": 1}), ("own", "t", {"y": 2}),
    ]  # fmt: skip


def test_without_routes_the_publishers_settings_are_the_only_rule() -> None:
    publisher = Publisher.model_validate({"options": {"compat": "strict"}, "topic": "all", "partition_by": "single"})
    (only,) = publisher.rules
    assert (only.format, only.options, only.topic, only.partition_by) == (
        "databus", {"compat": "strict"}, "all", "single",
    )  # fmt: skip
    assert filter_of(only, ORDERS, b"") is None


def test_columns_are_left_out_masked_hashed_truncated_and_renamed() -> None:
    filtered = orders_filter(
        columns={"exclude": ["status"]},
        mask=["total"],
        hash=["i?"],
        truncate={"email": 3, "photo": 2},
        rename={"email": "mail"},
    )
    digest = hmac.digest(b"pepper", b"1", "sha256").hex().encode()
    assert filtered.rows([ROW]) == [[digest, "grö".encode(), b"3", b"***", b"\x00\xff"]]
    table = filtered.table
    assert [(column.name, column.raw_type) for column in table.columns] == [
        ("id", "char(64)"), ("mail", "varchar(99)"), ("flags", "set('a','b')"), ("total", "varchar(3)"),
        ("photo", "blob"),
    ]  # fmt: skip
    assert not table.columns[0].auto_increment
    assert (table.primary_key, table.indexes) == ((0,), (Index("PRIMARY", ("id",)),))


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"hash": ["status"], "rename": {"status": "state"}}, ["state"]),
        ({"mask": ["status"]}, ["photo"]),
        ({"columns": {"exclude": ["status"]}}, ["photo"]),
        ({"truncate": {"photo": 1}}, ["status"]),
        ({"mask": ["status"], "truncate": {"photo": 1}}, []),
        ({"mask": ["status"], "hash": ["photo"], "truncate": {"photo": 1}}, ["photo"]),
    ],
)
def test_a_unique_key_stays_a_key_only_if_different_rows_keep_different_values(
    settings: dict[str, Any], key: list[str]
) -> None:
    unique = (Index("s", ("status",), unique=True), Index("p", ("photo",), unique=True), Index("t", ("total",)))
    published = Filter(rule(**settings), replace(ORDERS, primary_key=(), indexes=unique), b"pepper").table
    assert [published.columns[index].name for index in published.row_key] == key
    assert published.primary_key == ()


def test_null_stays_null_and_a_mask_takes_precedence_over_a_hash() -> None:
    filtered = orders_filter(mask=["*mail"], hash=["email", "total"], truncate={"email": 1})
    assert [row[1] for row in filtered.rows([ROW, [b"2", None, *ROW[2:]]])] == [b"***", None]


@pytest.mark.parametrize(
    ("condition", "passes"),
    [
        ({"column": "status", "equals": "paid"}, True),
        ({"column": "status", "not_in": ["paid", "lost"]}, False),
        ({"column": "status", "in": ["lost"]}, False),
        ({"column": "flags", "equals": "b,a"}, True),
        ({"column": "flags", "equals": "a"}, False),
        ({"column": "total", "equals": 5}, True),
        ({"column": "total", "in": ["4.5", "5.0"]}, True),
        ({"column": "id", "equals": 0}, False),
        ({"column": "id", "equals": "01"}, True),
        ({"column": "email", "equals": "größe@x"}, True),
        ({"column": "email", "is_null": True}, False),
        ({"column": "email", "is_null": False}, True),
    ],
)
def test_a_condition_compares_values_and_not_their_texts(condition: dict[str, Any], passes: bool) -> None:
    assert bool(orders_filter(where=[condition]).rows([ROW])) is passes


def test_a_year_in_a_condition_is_compared_as_four_digits() -> None:
    table = Table(schema="shop", name="t", columns=(Column(name="y", type="year", raw_type="year(4)"),), primary_key=())
    year_0 = Filter(rule(where=[{"column": "y", "equals": 0}]), table, b"")
    assert year_0.rows([[b"0000"], [b"2024"]]) == [[b"0000"]]


def test_a_decimal_in_a_condition_may_have_all_digits_of_its_column() -> None:
    column = Column(name="d", type="decimal", raw_type="decimal(65,20)")
    table = Table(schema="shop", name="t", columns=(column,), primary_key=())
    number = "9" * 45 + "." + "8" * 19
    found = Filter(rule(where=[{"column": "d", "equals": number}]), table, b"")
    assert found.rows([[f"{number}0".encode()]])


def test_null_is_not_equal_to_any_value() -> None:
    row: Row = [b"1", None, *ROW[2:]]
    assert not orders_filter(where=[{"column": "email", "in": ["x"]}]).rows([row])
    assert orders_filter(where=[{"column": "email", "not_in": ["x"]}]).rows([row])


def test_an_update_is_an_insert_if_only_its_after_image_passes_and_a_delete_if_only_its_before_image_does() -> None:
    filtered = orders_filter(where=[{"column": "status", "equals": "paid"}], columns={"include": ["id", "status"]})

    def row(n: int, status: int) -> Row:
        return [b"%d" % n, None, b"%d" % status, *ROW[3:]]

    images = [
        row(1, 1),
        row(1, 2),
        row(2, 1),
        row(2, 2),
        row(3, 2),
        row(3, 2),
        row(4, 2),
        row(4, 1),
        row(5, 1),
        row(5, 1),
    ]
    assert list(filtered.changes(Action.UPDATE, 7, images)) == [
        Run(Action.INSERT, [7, 8], [[b"1", b"2"], [b"2", b"2"]]),
        Run(Action.UPDATE, [9], [[b"3", b"2"], [b"3", b"2"]]),
        Run(Action.DELETE, [10], [[b"4", b"2"]]),
    ]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mask": ["emial"]}, "there is no column emial"),
        ({"truncate": {"total": 3}}, "truncate: column total is decimal(10,2), neither text nor bytes"),
        ({"truncate": {"id": 3}}, "column id is part of the primary key"),
        (
            {"columns": {"include": ["email"]}},
            "columns: id is part of the primary key: publish it (`hash` hides values)",
        ),
        (
            {"where": [{"column": "total", "equals": "5.001"}]},
            "'5.001' is not a value of column total, which is decimal(10,2)",
        ),
        ({"rename": {"email": "ID"}}, "rename: two columns would have the same name"),
        ({"rename": {"mail": "x"}}, "there is no column mail"),
    ],
)
def test_a_rule_that_does_not_fit_a_table_is_rejected(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSettings) as raised:
        orders_filter(**settings)
    assert f"does not fit table shop.orders: {message}" in str(raised.value)


def test_brackets_in_a_pattern_of_columns_stand_for_themselves() -> None:
    assert orders_filter(mask=["[est]*"]).rows([ROW]) == [ROW]


def test_every_rule_fits_a_dropped_table() -> None:
    dropped = Table(schema="shop", name="orders", columns=())
    assert filter_of(rule(mask=["email"]), dropped, b"") is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mach": ["*.*"]}, "mach: there is no such key; did you mean match"),
        ({"match": ["orders"]}, "match.0: must be schema.table"),
        ({"match": []}, "match: must not be empty"),
        ({"topic": "{tabel}"}, "topic: only {name}, {schema} and {table} can be used"),
        ({"topic": "{name.x}"}, "topic: only {name}, {schema} and {table} can be used"),
        ({"partition_by": "hash"}, "partition_by: must be"),
        ({"partition_by": "single", "key": ["id"]}, "key replaces partition_by"),
        ({"drop": True, "mask": ["email"]}, "drop: the rule publishes nothing: remove mask"),
        ({"columns": {"include": ["a"], "exclude": ["b"]}}, "columns: set exactly one of include, exclude"),
        ({"where": [{"column": "a"}]}, "where.0: set exactly one of equals, in, not_in, is_null"),
        (
            {"where": [{"column": "a", "equals": None}]},
            "where.0: equals: to find rows without a value, use is_null: true",
        ),
        ({"where": [{"column": "a", "equals": 1.5}]}, "where.0.equals"),
        ({"where": [{"column": "a", "in": [True]}]}, "where.0.in.0"),
        ({"truncate": {"a": 0}}, "truncate.a: must be greater than"),
        ({"rename": {"a": "n", "b": "N"}}, "rename: several columns would have the name n"),
        ({"topic": "{table!r}"}, "topic: only {name}, {schema} and {table} can be used"),
        (
            {"topic": "all changes"},
            "topic: Kafka allows only letters, digits, '.', '_' and '-' in topic names, not ' '",
        ),
        ({"topic": "{schema}-{table}", "escape_names": True}, "topic: with escape_names, {schema} and {table} need"),
        (
            {"output": "o", "topic": "databus.progress.shop"},
            "topic: topics like databus.progress.shop are for the progress",
        ),
        (
            {"output": "o", "topic": "databus_schemas.{table}"},
            "topic: topics like databus_schemas.x are for the progress",
        ),
        ({"output": "o", "topic": "."}, "topic: . is no name for a topic of Kafka"),
        ({"output": "o", "topic": "x" * 250}, f"topic: {'x' * 250} is no name for a topic of Kafka"),
        ({"output": "again"}, "topic: shop.x.x is the topic of x.x by publisher.routes: rule 1, for output default"),
        (
            {"output": "again", "topic": "{name}_{schema}.{table}"},
            "topic: for Kafka, shop_x.x is the same as shop.x.x, the topic of x.x",
        ),
    ],
)
def test_an_invalid_rule_is_rejected_with_its_number_and_the_reason(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    rules = [{"match": ["*.*"]}, {"match": ["*.*"]} | settings]
    (tmp_path / "databus.yaml").write_text(json.dumps({"name": "shop", "publisher": {"routes": rules}}))
    with pytest.raises(InvalidSettings) as raised:
        load(tmp_path / "databus.yaml")
    assert f"publisher.routes: rule 2: {message}" in str(raised.value)


def test_hash_needs_a_salt_and_the_salt_can_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "databus.yaml"
    publisher: dict[str, Any] = {"routes": [{"match": ["*.*"], "hash": ["email"]}]}
    path.write_text(json.dumps({"name": "shop", "publisher": publisher}))
    with pytest.raises(InvalidSettings, match=r"rule 1: hash needs publisher\.salt or publisher\.salt_file"):
        load(path)
    (tmp_path / "salt").write_text("pepper\n")
    path.write_text(json.dumps({"name": "shop", "publisher": publisher | {"salt_file": f"{tmp_path}/salt"}}))
    settings: Settings = load(path)
    assert settings.publisher.salt.get_secret_value() == "pepper"
    assert "pepper" not in repr(settings)
