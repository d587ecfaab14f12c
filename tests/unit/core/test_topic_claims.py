"""Which of several tables has a topic, and how escaped names keep the topics of all tables apart."""

import re
from itertools import product
from typing import Any

import pytest

from databus_core import names
from databus_core.events import Table
from databus_core.kafka_history import SchemaHistory
from databus_core.settings import Settings
from databus_core.settings.topic_claims import known_claims

FIRST, SECOND = ("c_cs", "order_items"), ("c_cs_order", "items")
#: schemas and tables of which many have the same topic if they are only joined
WORDS = ["a", "a_", "_a", "a_a", "a.a", "a-5fa", "a$a", "ä", "A"]


def refusals(*tables: tuple[str, str], name: str = "shop", folded: bool = False, **publisher: Any) -> list[str]:
    settings = Settings.model_validate({"name": name, "publisher": publisher})
    return [refused.refusal for refused in known_claims(settings, tables, folded=folded).refused.values()]


def test_the_second_table_has_no_topic_and_the_reason_names_both_and_the_option() -> None:
    (refusal,) = refusals(FIRST, SECOND, topic="{schema}_{table}")
    assert refusal.startswith("table c_cs_order.items has no topic: c_cs_order_items is the topic of c_cs.order_items")
    assert "escape_names" in refusal
    (refusal,) = refusals(FIRST, SECOND, folded=True)
    assert "for Kafka, shop.c_cs_order.items is the same as shop.c_cs.order_items" in refusal
    assert refusals(FIRST, SECOND) == []  # Kafka decides which of them is the first


@pytest.mark.parametrize("template", ["{name}.{schema}.{table}", "{schema}_{table}", "x-{table}.y.{schema}-z"])
def test_escaped_names_never_collide(template: str) -> None:
    tables = list(product(WORDS, WORDS))
    assert refusals(*tables, topic=template, folded=True)
    assert refusals(*tables, topic=template, folded=True, escape_names=True) == []
    topics = names.table_topics([(template, True)], "shop", ["a?a.*"])
    escaped = [names.table_topic(template, "shop", "a_a", table, escape=True) for table in WORDS]
    assert all(re.fullmatch(topics, topic) for topic in escaped)


def test_tables_share_a_topic_if_the_template_does_not_use_what_they_differ_in() -> None:
    tables = [FIRST, SECOND, ("other", "items")]
    assert refusals(*tables, topic="{name}.all", folded=True) == []
    assert refusals(SECOND, ("other", "items"), topic="search.{table}", folded=True) == []
    routes = [{"match": ["c_cs.*"], "topic": "all.x"}, {"match": ["*.*"], "topic": "all.{table}"}]
    assert refusals(FIRST, ("other", "x"), routes=routes) == []
    routes[0]["format"] = "canal-json"
    assert len(refusals(FIRST, ("other", "x"), routes=routes)) == 1


def test_two_outputs_cannot_publish_a_table_to_one_topic() -> None:
    routes = [{"match": ["shop.a*"]}, {"match": ["shop.*b"], "output": "again"}]
    (refusal,) = refusals(("shop", "ab"), ("shop", "ax"), ("shop", "xb"), routes=routes)
    assert refusal.startswith(
        "table shop.ab has no topic: shop.shop.ab is the topic of shop.ab by publisher.routes: rule 1, for output"
    )


def test_no_table_has_a_topic_of_a_pipelines_own_or_one_with_an_impossible_name() -> None:
    assert "dead letters of pipelines" in refusals(("progress", "shop"), name="databus")[0]
    assert refusals(("deadletter_x", "t"), name="databus")
    assert refusals(("my_progress", "shop"), name="databus") == []
    assert "at most 249 characters" in refusals(("s", "tt"), topic="x" * 248 + "{table}")[0]


def test_a_table_that_waits_claims_its_topic_after_the_others() -> None:
    tables = {name: Table(schema=name[0], name=name[1], columns=()) for name in (FIRST, SECOND)}
    assert SchemaHistory(tables).by_claim() == [FIRST, SECOND]
    assert SchemaHistory(tables, waiting={FIRST}).by_claim() == [SECOND, FIRST]
