"""Which tables a request for backfills selects, and what of it does not fit the settings."""

import pytest

from databus_changes.backfill_tables import BackfillRequest, conflicts, option_faults, select_tables
from databus_core.events import Table
from databus_core.settings import Settings
from databus_core.table_states import Backfill, BackfillProgress, TableDoubt, TableStates

SETTINGS = Settings.model_validate(
    {
        "name": "p",
        "source": {"include": ["shop.*", "stock.*"], "exclude": ["shop.tmp"]},
        "publisher": {
            "routes": [
                {"match": ["*.staff"], "drop": True},
                {"match": ["*.*"]},
                {"match": ["shop.orders"], "output": "audit", "topic": "audit.{name}.{schema}.{table}"},
            ]
        },
    }
)
NAMES = [
    ("shop", "items"),
    ("shop", "orders"),
    ("shop", "staff"),
    ("shop", "tmp"),
    ("stock", "orders"),
    ("x", "orders"),
]
TABLES = [Table(schema=schema, name=name, columns=()) for schema, name in NAMES]


def select(*patterns: str, output: str = "") -> tuple[list[str], list[tuple[str, str]], list[str]]:
    """Return the names of the selected tables, the tables that are not seen, and the beginning of each fault."""
    found = select_tables(TABLES, SETTINGS, BackfillRequest(tables=patterns, output=output))
    names = [table.full_name for table in found.tables.values()]
    return names, found.unseen, [fault.partition(":")[0] for fault in found.faults]


@pytest.mark.parametrize(
    ("pattern", "output", "names"),
    [
        ("*.*", "", ["shop.items", "shop.orders", "stock.orders"]),
        ("*.orders", "", ["shop.orders", "stock.orders"]),
        ("shop.?tems", "", ["shop.items"]),
        ("*.*", "audit", ["shop.orders"]),
        ("shop.orders", "audit", ["shop.orders"]),
        ("stock.orders", "default", ["stock.orders"]),
    ],
)
def test_only_captured_and_published_tables_are_selected(pattern: str, output: str, names: list[str]) -> None:
    assert select(pattern, pattern, output=output) == (names, [], [])


@pytest.mark.parametrize(
    ("pattern", "output", "fault"),
    [
        ("shop.tmp", "", "table shop.tmp is not captured"),
        ("x.orders", "", "table x.orders is not captured"),
        ("shop.staff", "", "table shop.staff is not published"),
        ("shop.items", "audit", "table shop.items is not published by output audit, only by default"),
        ("shop.t*", "", "no captured and published table matches shop.t*"),
        ("x.*", "", "no captured and published table matches x.*"),
        ("stock.*", "audit", "no captured and published table matches stock.*"),
    ],
)
def test_a_pattern_without_such_a_table_is_a_fault(pattern: str, output: str, fault: str) -> None:
    assert select("shop.orders", pattern, output=output) == (["shop.orders"], [], [fault])


def test_a_name_that_the_account_does_not_see_is_left_to_the_database() -> None:
    assert select("shop.none", "shop.items") == (["shop.items"], [("shop", "none")], [])


def test_an_output_that_does_not_exist_is_one_fault_of_the_request() -> None:
    assert select("shop.items", output="no") == (["shop.items"], [], [])
    wanted = BackfillRequest(tables=["shop.items"], output="no", clean=True, where="1")
    assert option_faults(SETTINGS, wanted) == [
        "there is no output no: publisher.routes has audit, default",
        "clean and where exclude each other: leave out one of them",
    ]


def test_tables_that_are_loaded_or_in_doubt_are_conflicts() -> None:
    backfills = {each: Backfill(id=each, schema="shop", table=name) for each, name in (("1", "items"), ("2", "orders"))}
    doubt = TableDoubt(state="parked", reason="rollback", text="ROLLBACK", file="log.1", offset=4, since_us=5)
    states = TableStates(backfills, {"2": BackfillProgress(state="done")}, {("stock", "orders"): doubt})
    loading = "table shop.items has backfill 1 (waiting): let it end, or cancel it"
    parked = "table stock.orders is in doubt: request it with clean, and for all outputs"
    for options, expected in (
        ({}, [loading, parked]),
        ({"clean": True}, [loading]),
        ({"clean": True, "output": "a"}, [loading, parked]),
    ):
        assert conflicts(states, NAMES, BackfillRequest(tables=["*.*"], **options)) == expected
