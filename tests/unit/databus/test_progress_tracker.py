"""The progress that the publisher tracks in a generation (see `databus.pipe`)."""

import pytest

from databus.errors import GenerationLost
from databus.events import Begin, Commit, Heartbeat, Start
from databus.progress import Progress
from databus.progress_tracker import ProgressTracker
from databus_binlog import Position

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def begin(transaction: int) -> Begin:
    return Begin(transaction=transaction, gtid="", file="log.2", server_id=1, thread_id=7, time_us=20)


def test_the_gtid_set_grows_by_skipped_and_by_committed_transactions() -> None:
    tracker = ProgressTracker(Progress(Position(f"{UUID}:1-4", "log.1", 100), 7, 10, "a"))
    tracker.start(Start(Position(f"{UUID}:1-4", "log.1", 100), "a", "mysql", 10, in_order=True))
    assert tracker.take() == Progress(Position(f"{UUID}:1-4", "log.1", 100), 7, 10, "a", in_order=True)
    tracker.skip(Heartbeat(f"{UUID}:5-6", "log.2", 300, 15))
    tracker.begin(begin(8))
    tracker.commit(Commit(f"{UUID}:7,{UUID}:9", "log.2", 400, None))
    assert tracker.moved
    assert tracker.take() == Progress(Position(f"{UUID}:1-7:9", "log.2", 400), 8, 20, "a", in_order=True)
    assert not tracker.moved


def test_a_mariadb_domain_keeps_only_its_last_gtid() -> None:
    tracker = ProgressTracker(Progress())
    tracker.start(Start(Position("0-1-5,1-1-9", "log.1", 100), "a", "mariadb", 10, in_order=False))
    tracker.skip(Heartbeat("0-2-7", "log.2", 300, 15))
    assert tracker.take().position == Position("0-2-7,1-1-9", "log.2", 300)


def test_a_transaction_out_of_order_ends_the_generation() -> None:
    tracker = ProgressTracker(Progress(transaction=7))
    with pytest.raises(GenerationLost):
        tracker.begin(begin(8))  # the reader's Start is missing
    tracker.start(Start(Position("", "log.1", 100), "a", "mysql", 10, in_order=True))
    tracker.begin(begin(8))
    with pytest.raises(GenerationLost):
        tracker.begin(begin(9))
