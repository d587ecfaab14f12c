"""Backfills and tables in doubt under every fault, with the rules of `model.backfill_rules` and without them.

The searches here are short; `make model ARGS=--backfill` searches for longer.
"""

from pathlib import Path

import pytest

from model.backfill_rules import RULES, UNNEEDED
from model.backfill_walk import search
from model.world import Violated

#: first walk without a rule: from here on, the rarest violations are found soon
_FIRST = 550
_PAGE = Path(__file__).parents[2] / "docs/reference/backfill-protocol.md"


def test_what_was_backfilled_equals_the_source_at_the_stream_s_position_under_any_fault() -> None:
    search(300)


@pytest.mark.parametrize("rule", RULES)
def test_walks_find_a_violation_if_a_rule_is_left_out(rule: str) -> None:
    with pytest.raises(Violated):
        search(2000, without={rule}, first=_FIRST)


@pytest.mark.parametrize("rule", UNNEEDED)
def test_walks_find_no_violation_without_a_rule_that_only_saves_work(rule: str) -> None:
    search(100, without={rule})


def test_the_page_of_the_protocol_lists_the_rules_and_their_switches() -> None:
    rows = [line for line in _PAGE.read_text().splitlines() if line.endswith("` |")]
    assert rows == [f"| {text} | `{rule}` |" for rule, text in (RULES | UNNEEDED).items()]
