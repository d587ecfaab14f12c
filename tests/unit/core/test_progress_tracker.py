"""The progress that the publisher tracks in a generation (see `databus_core.pipe`)."""

import pytest

from databus_binlog import Position
from databus_core.errors import GenerationLost
from databus_core.events import Begin, Commit, Decided, Heartbeat, Prepared, Start
from databus_core.progress import PreparedTransaction, Progress, decode_progress, encode_progress
from databus_core.progress_tracker import ProgressTracker

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


def test_a_prepared_transaction_is_listed_with_the_position_before_it_until_it_is_decided() -> None:
    old = PreparedTransaction(xid="a", gtid="", position=Position("", "log.1", 4), server="a", in_order=True, time_us=1)
    tracker = ProgressTracker(Progress(Position(f"{UUID}:1-4", "log.1", 100), 7, 10, "a", prepared=(old,)))
    tracker.start(Start(Position(f"{UUID}:1-4", "log.1", 100), "b", "mysql", 10, in_order=False))
    tracker.prepare(Prepared("b", f"{UUID}:6", f"{UUID}:5", "log.2", 300, 20))
    before = Position(f"{UUID}:1-5", "log.2", 300)
    new = PreparedTransaction(xid="b", gtid=f"{UUID}:6", position=before, server="b", in_order=False, time_us=20)
    progress = tracker.take()
    assert progress == Progress(before, 7, 10, "b", in_order=False, prepared=(old, new), other_log_until=7)
    assert decode_progress(encode_progress(progress)) == progress
    tracker.skip(Heartbeat(f"{UUID}:6-7", "log.2", 400, 15))
    assert tracker.take().position == Position(f"{UUID}:1-7", "log.2", 400)
    tracker.begin(begin(8))
    tracker.decide(Decided("a"))
    tracker.commit(Commit(f"{UUID}:8", "log.2", 500, None))
    assert tracker.take().prepared == (new,)
    tracker.decide(Decided("b"))
    assert tracker.moved
    assert tracker.take().prepared == ()


def test_a_new_start_forgets_prepared_transactions() -> None:
    old = PreparedTransaction(xid="a", gtid="", position=Position("", "log.1", 4), server="a", in_order=True, time_us=1)
    tracker = ProgressTracker(Progress(Position(f"{UUID}:1-4", "log.1", 100), 7, 10, "a", prepared=(old,)))
    tracker.start(Start(Position("", "log.9", 50), "b", "mysql", 30, in_order=True, anew=True))
    assert tracker.take() == Progress(Position("", "log.9", 50), 7, 30, "b", in_order=True, other_log_until=7)


@pytest.mark.parametrize(
    ("server", "anew", "until"), [("a", False, 3), ("b", False, 7), ("a", True, 7)], ids=["same", "failover", "new log"]
)
def test_up_to_where_positions_are_those_of_another_log(server: str, anew: bool, until: int) -> None:
    tracker = ProgressTracker(Progress(Position("", "log.1", 100), 7, 10, "a", other_log_until=3))
    tracker.start(Start(Position("", "log.9", 50), server, "mysql", 30, in_order=True, anew=anew))
    tracker.begin(begin(8))
    tracker.commit(Commit("", "log.9", 400, None))
    assert tracker.take().other_log_until == until


def test_a_progress_without_prepared_transactions_is_one_of_an_earlier_release() -> None:
    assert decode_progress(b'{"position":null,"transaction":7}') == Progress(transaction=7)


def test_a_transaction_out_of_order_ends_the_generation() -> None:
    tracker = ProgressTracker(Progress(transaction=7))
    with pytest.raises(GenerationLost):
        tracker.begin(begin(8))  # the reader's Start is missing
    tracker.start(Start(Position("", "log.1", 100), "a", "mysql", 10, in_order=True))
    tracker.begin(begin(8))
    with pytest.raises(GenerationLost):
        tracker.begin(begin(9))
