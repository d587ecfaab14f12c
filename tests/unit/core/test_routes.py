"""What the lake keeps of the rules by which tables are published."""

from typing import Any

import pytest

from databus_core.routes import described, fingerprint, fingerprint_of, published_as, rules_of
from databus_core.settings import Publisher

ROUTES: list[dict[str, Any]] = [
    {"match": ["shop.tmp*"], "drop": True},
    {
        "match": ["shop.items"],
        "exclude": ["shop.items_old"],
        "topic": "items",
        "columns": {"exclude": ["price"]},
        "where": [{"column": "kind", "in": ["a", 1]}, {"column": "gone", "is_null": True}],
        "mask": ["name"],
        "truncate": {"note": 3},
        "rename": {"a": "b"},
        "key": ["id"],
    },
    {"match": ["*.*"], "output": "archive", "topic": "archive.{schema}.{table}"},
    {"match": ["*.*"]},
]


def rules(**changed: Any) -> list[Any]:
    """Return the rules, with another one for shop.items."""
    routes = [ROUTES[0], ROUTES[1] | changed, *ROUTES[2:]]
    return Publisher(routes=routes, salt="a secret of enough length", topic="{name}.of.{schema}.{table}").rules


def test_rules_that_were_kept_are_the_same_rules() -> None:
    kept = described(rules())
    assert described(rules_of(kept)) == kept
    assert fingerprint_of(kept) == fingerprint(rules())
    for table in ("tmp_1", "items", "other"):
        assert published_as(rules_of(kept), "shop", table) == published_as(rules(), "shop", table)
    assert published_as(rules(), "shop", "tmp_1") is None


@pytest.mark.parametrize(
    "changed",
    [{"topic": "x"}, {"columns": {"include": ["id"]}}, {"where": []}, {"hash": ["id"]}, {"truncate": {"note": 4}}],
)
def test_what_changes_topics_or_rows_changes_the_fingerprint(changed: dict[str, Any]) -> None:
    assert fingerprint(rules(**changed)) != fingerprint(rules())
    assert published_as(rules(**changed), "shop", "items") != published_as(rules(), "shop", "items")
    assert published_as(rules(**changed), "shop", "other") == published_as(rules(), "shop", "other")


def test_what_does_not_concern_rows_does_not() -> None:
    assert fingerprint(rules(key=["name"])) == fingerprint(rules())
