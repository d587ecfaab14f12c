"""Rules of the protocol, each with a patch that leaves it out of the real code or of the model's Kafka.

If the model found no violation without a rule, it would prove nothing about that rule.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from databus_core import pipe
from databus_core.events import Begin, Heartbeat, Prepared, Start
from databus_core.pipe import Acceptance, Entry
from databus_core.progress import Progress
from databus_core.progress_tracker import ProgressTracker
from databus_publisher.publication import Publication
from model.memory_kafka import MemoryKafka, MemoryKafkaWithoutTransactions, MemoryProducer

Omission = AbstractContextManager[Any]

_accept = Acceptance.accept


def _accepting(change: Callable[[Acceptance, Entry], Entry]) -> Omission:
    """Call `change` before the publisher checks an entry, so that the check of one rule always passes."""
    return patch.object(Acceptance, "accept", lambda self, entry: _accept(self, change(self, entry)))


def _any_number(acceptance: Acceptance, entry: Entry) -> Entry:
    acceptance.next = entry.number
    return entry


def _begin(tracker: ProgressTracker, begin: Begin) -> None:
    """Accept a transaction with any ordinal."""
    tracker._begin = begin


async def _abandon(publication: Publication) -> Progress:
    """Do not wait for the commit that is under way."""
    await publication._producer.abort()
    return publication.committed


async def _no_abort(producer: MemoryProducer) -> None:
    """Leave the transaction open."""


def _unlisted(tracker: ProgressTracker, event: Prepared) -> None:
    """Advance to the position, but do not list the transaction."""
    tracker.skip(Heartbeat(event.executed, event.file, event.start, event.time_us))


async def _no_first_commit(self: Publication, event: Start) -> None:
    """Start at the first position, but do not commit it before anything else."""
    self._tracker.start(event)


def _without_lua(text: str, instead: str = "") -> Omission:
    assert text in pipe._SOURCE
    return patch.object(pipe, "_SOURCE", pipe._SOURCE.replace(text, instead))


#: the check in pipe.lua's `append`
_REFUSAL = "if generation[1] ~= args[1] or generation[2] ~= args[2] or generation[3] ~= args[3] then return LOST end"
#: the part of that check which compares the number
_NUMBER = " or generation[3] ~= args[3]"

#: switch → patch that leaves its rule out; docs/reference/protocol.md has the rules and their switches
LEFT_OUT: dict[str, Callable[[], Omission]] = {
    "token": lambda: _accepting(lambda acceptance, entry: entry._replace(token=acceptance.token)),
    "claim": lambda: _accepting(lambda acceptance, entry: entry._replace(claim=acceptance.claim or entry.claim)),
    "number": lambda: _accepting(_any_number),
    "ordinal": lambda: patch.object(ProgressTracker, "begin", _begin),
    "refusal": lambda: _without_lua(_REFUSAL, "generation[4], generation[6] = generation[4] or 0, generation[6] or 0"),
    "refusal of a number": lambda: _without_lua(_NUMBER),
    "list": lambda: patch.object(ProgressTracker, "prepare", _unlisted),
    "end": lambda: patch.object(Publication, "committable", property(lambda self: self._tracker.moved)),
    "commit": lambda: patch.object(Publication, "abandon", _abandon),
    "abort": lambda: patch.object(MemoryProducer, "abort", _no_abort),
    "fence": lambda: patch.object(MemoryKafka, "fences", False),
    "take-over": lambda: patch.object(MemoryKafka, "aborts", False),
    "first start": lambda: patch.object(Publication, "_commit_first_position", _no_first_commit),
    "silent open": lambda: patch.object(MemoryKafkaWithoutTransactions, "commits_to_open", True),
}


@contextmanager
def without(*rules: str) -> Iterator[None]:
    """Leave these rules out."""
    with ExitStack() as stack:
        for rule in rules:
            stack.enter_context(LEFT_OUT[rule]())
        yield
