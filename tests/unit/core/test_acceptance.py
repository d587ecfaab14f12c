"""Which entries of the Redis stream the publisher accepts.

A generation is one use of the stream: the publisher opens it with a token, a reader claims it with a token of its own
and numbers its entries. Any entry but the next one ends the generation.
"""

import pytest

from databus_core.errors import GenerationLost
from databus_core.pipe import Acceptance, Entry


def entry(token: bytes = b"g1", claim: bytes = b"r1", number: int = 0) -> Entry:
    return Entry(token, claim, number, b"")


def test_entries_of_the_first_claim_are_accepted_in_order() -> None:
    acceptance = Acceptance(b"g1")
    for number in range(3):
        acceptance.accept(entry(number=number))
    assert acceptance.next == 3


@pytest.mark.parametrize(
    "unexpected",
    [entry(token=b"g2", number=1), entry(claim=b"r2", number=1), entry(number=2), entry(number=0)],
    ids=["another generation", "another claim", "a gap", "a duplicate"],
)
def test_an_unexpected_entry_ends_the_generation(unexpected: Entry) -> None:
    acceptance = Acceptance(b"g1")
    acceptance.accept(entry())
    with pytest.raises(GenerationLost):
        acceptance.accept(unexpected)


def test_a_first_entry_with_another_number_than_0_ends_the_generation() -> None:
    with pytest.raises(GenerationLost):
        Acceptance(b"g1").accept(entry(number=1))


def test_the_entry_that_a_reader_leaves_when_it_ends_the_generation_is_not_accepted() -> None:
    with pytest.raises(GenerationLost, match="the reader has ended the generation"):
        Acceptance(b"g1").accept(entry(token=b"", claim=b""))
