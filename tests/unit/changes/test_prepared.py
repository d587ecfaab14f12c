"""XA transactions: rows that are prepared are emitted when they are committed, and never before."""

import pytest

from databus_binlog import Position
from databus_changes import held_rows, prepared
from databus_changes.doubts import Reason
from databus_changes.held_rows import HeldTransaction
from databus_changes.prepared import PreparedTransactions
from databus_core.errors import FatalError, Refusal, SourceRefused
from databus_core.events import Begin, Commit, Decided, Prepared, RowsEvent, TableDefinition
from databus_core.progress import PreparedTransaction

ONE, TWO, THREE = "X'31',X'',1", "X'32',X'ff',7", "X'33',X'',1"


def prepare(log, table, xid=ONE, *, rows=1):
    return (
        log.gtid(), log.query(f"XA START {xid}"), *(log.rows(table) for _ in range(rows)), log.query(f"XA END {xid}"),
        log.xa_prepare(xid),
    )  # fmt: skip


def outcome(log, verb, xid=ONE):
    return log.gtid(), log.query(f"XA {verb} {xid}", thread=3)


def transaction(log, table):
    return log.gtid(), log.query("BEGIN"), log.rows(table), log.xid()


def kinds(events):
    return [type(event).__name__ for event in events]


PUBLISHED = ["Begin", "TableDefinition", "RowsEvent", "Decided", "Commit"]


async def test_rows_are_emitted_at_xa_commit_as_a_transaction_of_its_own(make, log):
    table, translation = log.table(), make()
    assert await translation.of(*prepare(log, table, rows=2), table_maps=[table]) == [
        Prepared(ONE, f"{log.uuid}:1", "", "binlog.7", 4, 1_700_000_000_000_000)
    ]
    begin, definition, first, second, decided, commit = await translation.of(*outcome(log, "COMMIT"))
    assert (begin.transaction, begin.gtid, begin.thread_id, begin.start, begin.end) == (1, f"{log.uuid}:2", 3, 74, 84)
    assert isinstance(definition, TableDefinition)
    assert [(row.row, row.start, row.end) for row in (first, second)] == [(0, 74, 84), (1, 74, 84)]
    assert decided == Decided(ONE)
    assert commit == Commit(f"{log.uuid}:1-2", "binlog.7", 84, None, start=74)


async def test_mariadb_marks_the_gtid_event_and_logs_no_xa_start(make, log):
    table, translation = log.table(), make(flavor="mariadb")
    events = log.gtid("0-1-1", xa=True), log.rows(table), log.query(f"XA END {ONE}"), log.xa_prepare()
    assert kinds(await translation.of(*events, table_maps=[table])) == ["Prepared"]
    commit = log.gtid("0-1-2", standalone=True), log.query(f"XA COMMIT {ONE}")
    assert kinds(await translation.of(*commit)) == PUBLISHED


async def test_rows_that_are_rolled_back_are_never_emitted(make, log):
    table, translation = log.table(), make()
    assert kinds(await translation.of(*prepare(log, table), table_maps=[table])) == ["Prepared"]
    assert await translation.of(*outcome(log, "ROLLBACK")) == [Decided(ONE)]
    assert translation.translator.reached.take_heartbeat().executed == f"{log.uuid}:1-2"


async def test_other_transactions_flow_between_xa_prepare_and_xa_commit(make, log):
    table, translation = log.table(), make()
    events = *prepare(log, table), *transaction(log, table), *prepare(log, table, TWO), *outcome(log, "COMMIT", TWO)
    events = *events, *transaction(log, table), *outcome(log, "COMMIT")
    found = await translation.of(*events, table_maps=[table])
    assert [each.xid for each in found if isinstance(each, Decided)] == [TWO, ONE]
    assert [each.transaction for each in found if isinstance(each, Begin)] == [1, 2, 3, 4]
    assert [each.executed for each in found if isinstance(each, Commit)] == [
        f"{log.uuid}:1-2", f"{log.uuid}:3-4", f"{log.uuid}:5", f"{log.uuid}:6",
    ]  # fmt: skip
    second = next(each for each in found if isinstance(each, Prepared) and each.xid == TWO)
    assert (second.executed, second.start) == ("", events[9].start)


async def test_a_prepared_transaction_reports_the_gtids_before_it(make, log):
    table, translation = log.table(), make()
    grant = log.gtid(), log.query("GRANT ALL ON x.* TO u")
    [event] = await translation.of(*grant, *prepare(log, table), table_maps=[table])
    assert (event.executed, event.gtid) == (f"{log.uuid}:1", f"{log.uuid}:2")
    assert translation.translator.reached.take_heartbeat().executed == f"{log.uuid}:2"


async def test_an_xid_can_be_used_again(make, log):
    table, translation = log.table(), make()
    await translation.of(*prepare(log, table), *outcome(log, "COMMIT"), table_maps=[table])
    assert await translation.of(log.gtid(), log.query(f"XA START {ONE}"), log.xa_prepare()) == []
    assert await translation.of(*outcome(log, "COMMIT")) == []
    again = await translation.of(*prepare(log, table), *outcome(log, "COMMIT"))
    assert kinds(again) == ["Prepared", *[kind for kind in PUBLISHED if kind != "TableDefinition"]]


async def test_a_transaction_without_captured_rows_emits_nothing(make, log):
    table, translation = log.table("audit"), make()
    events = log.gtid(), log.query(f"XA START {ONE}"), log.xa_prepare(), *outcome(log, "COMMIT")
    assert await translation.of(*events, table_maps=[table]) == []


async def test_a_rollback_to_a_savepoint_is_a_doubt_when_the_transaction_is_committed(make, log):
    table = log.table()
    events = log.gtid(), log.query(f"XA START {ONE}"), log.rows(table), log.query("ROLLBACK TO s"), log.xa_prepare()
    events = *events, *outcome(log, "COMMIT")
    translation = make(lenient=True)
    assert kinds(await translation.of(*events, table_maps=[table])) == ["Prepared", "Decided"]
    assert [doubt.reason for doubt in translation.doubts] == [Reason.ROLLBACK]


async def test_an_xa_transaction_without_an_end_is_in_doubt(make, log):
    table = log.table()
    events = log.gtid(), log.query(f"XA START {ONE}"), log.rows(table), *transaction(log, table)
    translation = make(lenient=True)
    assert kinds(await translation.of(*events, table_maps=[table])) == [
        "Begin",
        "TableDefinition",
        "RowsEvent",
        "Commit",
    ]
    assert [doubt.reason for doubt in translation.doubts] == [Reason.UNFINISHED_TRANSACTION]


async def test_a_table_whose_columns_have_changed_since_xa_prepare_is_in_doubt(make, log):
    table = log.table()
    alter = log.gtid(), log.query("ALTER TABLE t ADD COLUMN c INT")
    events = *prepare(log, table), *alter, *outcome(log, "COMMIT")
    with pytest.raises(
        FatalError, match=r"^XA COMMIT at binlog\.7:84 of rows that were prepared before shop\.t was alt"
    ):
        await make(listed=None).of(*events, table_maps=[table])
    translation = make(listed=None, lenient=True)
    await translation.of(*events, table_maps=[table])
    assert (Reason.PREPARED_TABLES, frozenset({("shop", "t")})) in {(d.reason, d.tables) for d in translation.doubts}


@pytest.mark.parametrize("limits", [(1, 1 << 24), (1 << 20, 1)], ids=["of one", "of all"])
async def test_rows_above_the_memory_limit_are_kept_in_a_file(make, log, monkeypatch, limits):
    monkeypatch.setattr(held_rows, "_MEMORY_BYTES", limits[0])
    monkeypatch.setattr(prepared, "_MEMORY_BYTES", limits[1])
    moved: list[HeldTransaction] = []
    move = HeldTransaction.move_to_file
    monkeypatch.setattr(HeldTransaction, "move_to_file", lambda self: (moved.append(self), move(self)))
    table, translation = log.table(), make()
    events = *prepare(log, table, rows=3), *prepare(log, table, TWO), *outcome(log, "COMMIT"), *transaction(log, table)
    found = await translation.of(*events, table_maps=[table])
    published = ["Begin", "TableDefinition", *["RowsEvent"] * 3, "Decided", "Commit"]
    assert kinds(found) == ["Prepared", "Prepared", *published, "Begin", "RowsEvent", "Commit"]
    assert [each.row for each in found if isinstance(each, RowsEvent)] == [0, 1, 2, 0]
    assert moved


class Earlier:
    """A log that has the rows of some transactions. It counts the searches."""

    def __init__(self, log, table):
        self._log, self._table = log, table
        self.found = {}
        self.searches = 0

    async def search(self, xid, commit):
        self.searches += 1
        if xid not in self.found:
            raise SourceRefused(Refusal.PURGED, "purged")
        return self.found

    async def read(self, transaction):
        held = HeldTransaction(self._log.gtid())
        table = self._log.known()
        held.append(RowsEvent(table.fingerprint, "insert", 0, 1, 2, b"\x91\x91\xc4\x011"), table)
        return held


def listed(xid=ONE):
    return PreparedTransaction(
        xid=xid, gtid="", position=Position(file="binlog.6", offset=4), server="s", in_order=True, time_us=5
    )


async def test_rows_of_a_transaction_that_the_progress_lists_are_read_again_at_its_commit(make, log):
    earlier = Earlier(log, log.table())
    translation = make(prepared=PreparedTransactions([listed(), listed(TWO)], earlier))
    assert set(translation.translator.prepared.open()) == {(ONE, 5), (TWO, 5)}
    found = await translation.of(*outcome(log, "COMMIT"), *outcome(log, "ROLLBACK", TWO))
    assert kinds(found) == [*PUBLISHED, "Decided"]
    assert earlier.searches == 0
    assert list(translation.translator.prepared.open()) == []


async def test_a_listed_transaction_that_is_prepared_after_the_position_is_emitted_once(make, log):
    """The progress was committed right after the transaction was listed: its position is before the XA PREPARE."""
    table, earlier = log.table(), Earlier(log, log.table())
    translation = make(prepared=PreparedTransactions([listed()], earlier))
    events = *prepare(log, table), *outcome(log, "COMMIT")
    assert kinds(await translation.of(*events, table_maps=[table])) == ["Prepared", *PUBLISHED]
    with pytest.raises(SourceRefused):  # its place in the progress is not used again
        await translation.of(*outcome(log, "COMMIT"))


async def test_a_transaction_that_is_not_known_is_searched_with_all_that_were_open_with_it(make, log):
    earlier = Earlier(log, log.table())
    earlier.found = {ONE: None, TWO: listed(TWO)}
    translation = make(prepared=PreparedTransactions([], earlier))
    assert await translation.of(*outcome(log, "COMMIT")) == []
    found = await translation.of(*outcome(log, "COMMIT", TWO))
    assert (kinds(found), earlier.searches) == ([kind for kind in PUBLISHED if kind != "Decided"], 1)


async def test_a_transaction_that_the_binlog_no_longer_has_stops_the_translation(make, log):
    with pytest.raises(SourceRefused):
        await make(prepared=PreparedTransactions([], Earlier(log, log.table()))).of(*outcome(log, "COMMIT"))


async def test_a_search_does_not_replace_what_is_known(make, log):
    table, earlier = log.table(), Earlier(log, log.table())
    earlier.found = {ONE: None, TWO: None, THREE: None}
    translation = make(prepared=PreparedTransactions([listed(THREE)], earlier))
    await translation.of(*prepare(log, table), *outcome(log, "COMMIT", TWO), table_maps=[table])
    assert kinds(await translation.of(*outcome(log, "COMMIT"))) == PUBLISHED
    assert kinds(await translation.of(*outcome(log, "COMMIT", THREE)))[-2:] == ["Decided", "Commit"]
    assert earlier.searches == 1
    await translation.of(*outcome(log, "COMMIT"))  # another transaction with the same XID
    assert earlier.searches == 2
