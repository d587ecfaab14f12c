"""Changes by transactions: a dead letter that is replayed in between does not tear one apart."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from databus.block import Block
from databus.bookmark import Bookmark, Place
from databus.changes import Changes
from databus.origin import Origin
from databus.trail import Trail
from databus_core.events import Action


async def test_a_replayed_letter_comes_before_the_transaction_in_which_it_is_met(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trail = Trail(Bookmark(pipeline="shop", tables=["shop.*"], offsets={"a": {0: 10}}))

    async def blocks(self: Changes) -> AsyncGenerator[tuple[Block | None, Trail]]:
        rows: Any = None
        for offset, transaction in enumerate((6, 7, 2, 7, 3, 3, 7, 8), 10):
            sequence = f"{transaction:016d}-{offset:010d}"
            origin = Origin(sequence, topic="a", partition=0, offset=offset)
            yield Block(Action.INSERT, rows, origin, ["image"]), trail
        yield None, trail

    monkeypatch.setattr(Changes, "blocks", blocks)
    opener: Any = None
    found = [each async for each in Changes(opener, ["shop.*"], "earliest", None).transactions()]
    assert [(each.number, [change.origin.offset for change in each.changes]) for each in found] == [
        (6, [10]),
        (2, [12]),
        (3, [14]),
        (3, [15]),
        (7, [11, 13, 16]),
        (8, [17]),
    ]
    places = [(each.bookmark().offsets["a"][0], each.bookmark().ahead) for each in found]
    letters = [Place("a", 0, offset) for offset in (12, 14, 15)]
    assert places == [(11, []), (11, letters[:1]), (11, letters[:2]), (11, letters), (17, []), (18, [])]
    assert [change.bookmark().ahead for change in found[4].changes] == [letters, letters[1:], []]
