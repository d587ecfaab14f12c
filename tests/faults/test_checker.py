"""The checker can fail: it notices lost, doubled, swapped, wrong and torn changes, and bad positions."""

import json
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from random import Random
from types import SimpleNamespace

import pytest
from aiokafka import TopicPartition

from databus_core import names
from devstack.server import at
from faults.checker import Checker
from faults.copies import Violation
from faults.ledger import Book, Change, Ledger, Row
from faults.writer import Writer

_PARTITION = TopicPartition("ledger", 0)
Damage = Callable[[list[Change]], list[Change]]


class Tape:
    """Messages of the first transactions of a ledger, one for each change."""

    def __init__(self) -> None:
        self._ledger = Ledger(0, seed=1)
        self.checker = Checker([Writer(self._ledger, "shop", lambda: at("mariadb", "127.0.0.1", 1), Random())])
        self.checker.partitions = [_PARTITION]
        self.changes = [change for _ in range(20) for change in self._ledger.draw()]
        #: offsets and sequences behind those of the changes
        self.places = count(10_000)
        for change in self.changes:
            change.book.expected.append(change)

    def play(self, changes: list[Change], gap_at: int | None = None) -> None:
        for place, change in enumerate(changes):
            offset = place + (gap_at is not None and place >= gap_at)
            self.checker.check(_PARTITION, _record(offset, 100 + place, change))


def _record(offset: int, position: int, change: Change, sequence: int = 0) -> SimpleNamespace:
    columns = list(change.images[0])
    message = {
        "Table": {"Name": change.book.name, "Columns": [{"Name": column} for column in columns]},
        "Action": change.action,
        "Rows": [[b64encode(row[column].encode()).decode() for column in columns] for row in change.images],
    }
    key = {"Pos": {"Name": "binlog.000001", "Pos": position}}
    return SimpleNamespace(
        topic="ledger",
        partition=0,
        offset=offset,
        headers=((names.SEQUENCE_HEADER, b"%016d-0000000000" % (sequence or position)),),
        key=json.dumps(key).encode(),
        value=json.dumps(message).encode(),
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
    with pytest.raises(Violation, match="position does not grow"):
        tape.checker.check(_PARTITION, _record(1, 100, tape.changes[1], sequence=101))


def test_a_sequence_that_does_not_grow_is_noticed() -> None:
    tape = Tape()
    tape.checker.check(_PARTITION, _record(0, 100, tape.changes[0]))
    with pytest.raises(Violation, match="sequence does not grow"):
        tape.checker.check(_PARTITION, _record(1, 101, tape.changes[1], sequence=100))


def _loaded(tape: Tape, change: Change) -> Callable[[Row], None]:
    """Return a function that lets the checker read a row of a backfill of the change's table."""

    def load(row: Row) -> None:
        place = next(tape.places)
        record = _record(place, 10_000, replace(change, action="insert", images=(row,)), sequence=place)
        record.headers += ((names.SNAPSHOT_HEADER, b"incremental"),)
        tape.checker.check(_PARTITION, record)

    return load


def _truncate(tape: Tape, change: Change) -> None:
    place = next(tape.places)
    record = _record(place, 10_000, replace(change, action="truncate", images=({},)), sequence=place)
    tape.checker.check(_PARTITION, record)


def _last(tape: Tape, kind: str) -> Change:
    return next(change for change in reversed(tape.changes) if change.book.kind == kind)


def test_rows_of_backfills_are_accepted_where_they_are_exact() -> None:
    tape = Tape()
    tape.play(tape.changes)
    rows = tape.checker.rows
    account = _last(tape, "accounts")
    for _ in range(2):
        _loaded(tape, account)(account.images[-1])
    _truncate(tape, account)
    _loaded(tape, account)(account.images[-1])
    assert (tape.checker.rows, tape.checker.loaded_rows, tape.checker.truncates) == (rows, 3, 1)


def test_a_row_of_a_backfill_that_is_not_the_row_at_its_place_is_noticed() -> None:
    tape = Tape()
    tape.play(tape.changes)
    account, label = _last(tape, "accounts"), next(change for change in tape.changes if change.action == "delete")
    with pytest.raises(Violation, match="but at this place it is"):
        _loaded(tape, account)(account.images[0])
    with pytest.raises(Violation, match="but at this place it is no row"):
        _loaded(tape, label)(label.images[0])


def test_rows_of_a_table_without_a_key_that_are_loaded_beside_others_are_noticed() -> None:
    tape = Tape()
    tape.play(tape.changes)
    entry = _last(tape, "entries")
    with pytest.raises(Violation, match="loaded twice"):
        _loaded(tape, entry)(entry.images[0])
    _truncate(tape, entry)
    _loaded(tape, entry)(entry.images[0])


def test_only_changes_of_a_parked_table_may_be_left_out() -> None:
    def play(left_out: slice) -> Book:
        tape = Tape()
        parked = _last(tape, "accounts").book
        parked.left_out = 28
        left = [change for change in tape.changes if change.book is parked][left_out]
        tape.play([change for change in tape.changes if change not in left])
        return parked

    assert play(slice(22, 28)).left_out is None
    with pytest.raises(Violation, match="accounts_0: lost"):
        play(slice(29, 30))
