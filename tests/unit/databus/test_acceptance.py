"""Which entries of the stream the publisher accepts, and which end its generation."""

import pytest

from databus.errors import GenerationLost
from databus.pipe import Acceptance, Entry


def entry(token: bytes = b"g1", claim: bytes = b"r1", number: int = 0) -> Entry:
    return Entry(token, claim, number, b"")


def test_entries_of_the_first_claim_are_taken_in_order() -> None:
    acceptance = Acceptance(b"g1")
    for number in range(3):
        acceptance.accept(entry(number=number))
    assert acceptance.next == 3


@pytest.mark.parametrize(
    "stranger",
    [entry(token=b"g2", number=1), entry(claim=b"r2", number=1), entry(number=2), entry(number=0)],
    ids=["another generation", "another claim", "a hole", "a repetition"],
)
def test_anything_else_ends_the_generation(stranger: Entry) -> None:
    acceptance = Acceptance(b"g1")
    acceptance.accept(entry())
    with pytest.raises(GenerationLost):
        acceptance.accept(stranger)


def test_a_generation_cannot_begin_in_the_middle() -> None:
    with pytest.raises(GenerationLost):
        Acceptance(b"g1").accept(entry(number=1))
