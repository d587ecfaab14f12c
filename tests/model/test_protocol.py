"""The hand-over under every fault, with the rules of docs/reference/protocol.md and without them.

The searches here are short; `make model` searches for longer.
"""

from collections.abc import Callable

import pytest

from model.machine import HandOver, HandOverAtLeastOnce, explore
from model.rules import without
from model.stories import STORIES
from model.world import Violated, World


def test_nothing_is_lost_or_invented_under_any_fault() -> None:
    explore(HandOver, 25)


def test_the_publishers_checks_suffice_if_redis_refuses_nothing() -> None:
    with without("refusal"):
        explore(HandOver, 20)


@pytest.mark.parametrize("rule", ["end", "list", "commit", "abort", "fence", "take-over"])
def test_a_search_finds_a_violation_if_a_rule_is_left_out(rule: str) -> None:
    with without(rule), pytest.raises(Violated):
        explore(HandOver, 200, shrink=False)


@pytest.mark.parametrize(("story", "rules"), STORIES)
def test_a_story_goes_wrong_only_without_any_of_its_rules(story: Callable[[], World], rules: tuple[str, ...]) -> None:
    for kept in rules:
        with without(*(rule for rule in rules if rule != kept)):
            story().drain()
    with without(*rules), pytest.raises(Violated):
        story()


def test_without_transactions_nothing_is_lost_and_each_attempt_is_in_order_without_gaps() -> None:
    explore(HandOverAtLeastOnce, 20)
