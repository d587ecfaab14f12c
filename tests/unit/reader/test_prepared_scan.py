"""What a part of the binlog shows about XA transactions."""

from databus_binlog import Position
from databus_core.progress import PreparedTransaction
from databus_reader.prepared_scan import PreparedScan
from unit.changes.conftest import Log

ONE, TWO, THREE = "X'31',X'',1", "X'32',X'',1", "X'33',X'',1"


def test_only_the_last_outcome_of_each_transaction_counts() -> None:
    log = Log()
    table = log.table()
    again = log.gtid(), log.rows(table), log.xa_prepare(ONE), log.gtid(), log.query(f"XA COMMIT {ONE}")
    last = log.gtid("0-1-7"), log.oversized(table), log.xa_prepare(ONE)
    others = (
        log.gtid(), log.xa_prepare(TWO), log.gtid(), log.query(f"XA ROLLBACK {THREE}"),
        log.gtid(), log.rows(table), log.xa_prepare("X'34',X'',1", one_phase=True),
    )  # fmt: skip
    scan = PreparedScan("server")
    for event in (*again, *last, *others):
        scan.add(event)
    place = Position("", "binlog.7", 54)
    open_one = PreparedTransaction(
        xid=ONE, gtid="0-1-7", position=place, server="server", in_order=True, time_us=1_700_000_000_000_000
    )
    assert scan.open == {ONE: open_one, TWO: None}
    assert scan.seen == {ONE, TWO, THREE}


def test_a_second_outcome_after_a_crash_finds_rows_that_are_still_to_publish() -> None:
    log = Log()
    table, outcome = log.table(), PreparedScan("server", ONE)
    prepare = log.gtid("0-1-7"), log.rows(table), log.xa_prepare(ONE)
    for event in (*prepare, log.gtid(), log.query(f"XA ROLLBACK {ONE}")):
        outcome.add(event)
    assert (rows := outcome.open[ONE]) and rows.gtid == "0-1-7" and not outcome.committed
    for event in (log.gtid(), log.query(f"XA COMMIT {ONE}")):
        outcome.add(event)
    assert (outcome.open, outcome.seen, outcome.committed) == ({}, {ONE}, True)
    for event in (log.gtid(), log.xa_prepare(ONE)):  # the XID is used again
        outcome.add(event)
    assert (outcome.open, outcome.committed) == ({ONE: None}, False)
