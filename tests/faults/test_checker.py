"""The checker can fail: it notices lost, doubled, swapped, wrong and torn changes, and bad positions."""

import json
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import pytest
from aiokafka import TopicPartition

from devstack.server import at
from faults.checker import Checker, Violation
from faults.ledger import Change, Ledger
from faults.writer import Writer

_PARTITION = TopicPartition("ledger", 0)
Damage = Callable[[list[Change]], list[Change]]


class Tape:
    """Messages of the first transactions of a ledger, one for each change."""

    def __init__(self) -> None:
        self._ledger = Ledger(0, seed=1)
        self.checker = Checker([Writer(self._ledger, "shop", lambda: at("mariadb", "127.0.0.1", 1))])
        self.checker.partitions = [_PARTITION]
        self.changes = [change for _ in range(20) for change in self._ledger.draw()]
        for change in self.changes:
            change.book.expected.append(change)

    def play(self, changes: list[Change], gap_at: int | None = None) -> None:
        for place, change in enumerate(changes):
            offset = place + (gap_at is not None and place >= gap_at)
            self.checker.check(_PARTITION, _record(offset, 100 + place, change))


def _record(offset: int, position: int, change: Change) -> SimpleNamespace:
    columns = list(change.images[0])
    message = {
        "Table": {"Name": change.book.name, "Columns": [{"Name": column} for column in columns]},
        "Action": change.action,
        "Rows": [[b64encode(row[column].encode()).decode() for column in columns] for row in change.images],
    }
    key = {"Pos": {"Name": "binlog.000001", "Pos": position}}
    return SimpleNamespace(
        topic="ledger", partition=0, offset=offset, key=json.dumps(key).encode(), value=json.dumps(message).encode()
    )


def _wrong(change: Change) -> Change:
    return replace(change, images=(*change.images[:-1], change.images[-1] | {"text": "other"}))


def test_undamaged_messages_are_accepted() -> None:
    tape = Tape()
    tape.play(tape.changes)
    assert tape.checker.rows == len(tape.changes)
    assert tape.checker.transactions == 20


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda all_: all_[:40] + all_[41:], "lost|missing"),
        (lambda all_: [*all_[:40], all_[39], *all_[40:]], "doubled|not written"),
        (lambda all_: [*all_[:40], all_[41], all_[40], *all_[42:]], "lost|wrong|missing"),
        (lambda all_: [*all_[:40], _wrong(all_[40]), *all_[41:]], "wrong"),
        (lambda all_: all_[21:], "lost"),
        (lambda all_: all_ + all_[-1:], "not written, or came before"),
    ],
    ids=["lost", "doubled", "swapped", "wrong", "a transaction lost", "doubled at the end"],
)
def test_damage_is_noticed(damage: Damage, message: str) -> None:
    tape = Tape()
    with pytest.raises(Violation, match=message):
        tape.play(damage(tape.changes))


def test_a_transaction_in_two_transactions_of_kafka_is_noticed() -> None:
    tape = Tape()
    tape.play(tape.changes, gap_at=21)  # after the first transaction, a commit marker takes an offset
    tape = Tape()
    with pytest.raises(Violation, match="torn"):
        tape.play(tape.changes, gap_at=10)  # inside the first transaction


def test_a_position_that_does_not_grow_is_noticed() -> None:
    tape = Tape()
    tape.checker.check(_PARTITION, _record(0, 100, tape.changes[0]))
    with pytest.raises(Violation, match="does not grow"):
        tape.checker.check(_PARTITION, _record(1, 100, tape.changes[1]))
