"""Tables in doubt are set aside: what is left out of the stream, and what is not."""

import pytest

from databus_changes.doubts import Doubt, Reason
from databus_core.events import Begin, Commit, QueryEvent, RowsEvent, StateRecord

PARKED, ENDED, MOVED = StateRecord(b"parked", b""), StateRecord(b"ended", None), StateRecord(b"moved", b"")


VERDICT = Doubt(
    reason=Reason.ROLLBACK,
    text="",
    advice="",
    file="",
    offset=4,
    tables=frozenset({("shop", "t")}),
    whole_transaction=True,
)


class Aside:
    """Parks what a test says, and remembers what it was told."""

    def __init__(self):
        self.parked, self.condemned = set(), set()
        self.reported, self.begun, self._waiting = [], [], []

    def open(self, gtid, place):
        return False

    async def end_skip(self):
        return []

    def report(self, doubt):
        self.reported.append(doubt.reason)
        self._waiting.append(doubt)

    def may_concern(self, place):
        return bool(self.condemned or self._waiting)

    def begin(self, place):
        self.begun.append(place)
        return VERDICT if place in self.condemned else None

    def leaves_out(self, table):
        return table in self.parked

    def dropped(self, table):
        self.parked.discard(table)
        return [ENDED]

    def renamed(self, renames):
        self.renames = list(renames)
        return [MOVED] if renames else []

    def columns_removed(self, table, columns):
        self.removed = {table: columns} if columns else {}
        return [MOVED] if columns else []

    async def park(self):
        waiting, self._waiting = self._waiting, []
        for doubt in waiting:
            self.parked |= doubt.tables
        return [PARKED for _ in waiting]


@pytest.fixture
def aside():
    return Aside()


def kinds(events):
    return [type(event).__name__ for event in events]


def transaction(log, *tables):
    return log.gtid(), log.query("BEGIN"), *map(log.rows, tables), log.xid()


def xa(log, *tables, verb="COMMIT", xid="X'31',X'',1"):
    held = log.gtid(), log.query(f"XA START {xid}"), *map(log.rows, tables), log.query("XA END"), log.xa_prepare(xid)
    return held, (log.gtid(), log.query(f"XA {verb} {xid}"))


async def test_rows_of_a_parked_table_are_left_out_and_all_others_flow(make, log, aside):
    t, u, translation = log.table(), log.table("u"), make(parking=aside)
    aside.parked = {("shop", "t")}
    events = await translation.of(*transaction(log, t, u), table_maps=[t, u])
    assert kinds(events) == ["Begin", "TableDefinition", "RowsEvent", "Commit"]
    assert await translation.of(*transaction(log, t)) == []
    assert translation.translator.reached.take_heartbeat().executed == f"{log.uuid}:2"


async def test_a_table_is_parked_at_the_change_in_doubt(make, log, aside):
    t, u, translation = log.table(), log.table("u"), make(parking=aside)
    incomplete = log.rows(t, complete=False)
    rows = log.rows(t), incomplete, log.rows(t), log.rows(u)
    events = await translation.of(log.gtid(), log.query("BEGIN"), *rows, log.xid(), table_maps=[t, u])
    assert aside.reported == [Reason.INCOMPLETE_ROW_IMAGE]
    assert kinds(events) == ["Begin", "TableDefinition", "RowsEvent", "StateRecord", "TableDefinition", "RowsEvent",
                             "Commit"]  # fmt: skip


async def test_ddl_on_a_parked_table_is_published(make, log, aside):
    t, translation = log.table(), make(parking=aside)
    await translation.of(*transaction(log, t), table_maps=[t])
    aside.parked = {("shop", "t")}
    events = await translation.of(log.gtid(), log.query("ALTER TABLE t ADD COLUMN a INT"))
    assert [type(event) for event in events if isinstance(event, QueryEvent | RowsEvent)] == [QueryEvent]
    assert aside.parked


async def test_drop_ends_the_doubt_in_the_same_transaction(make, log, aside):
    t, translation = log.table(), make(parking=aside)
    await translation.of(*transaction(log, t), table_maps=[t])
    aside.parked = {("shop", "t")}
    events = await translation.of(log.gtid(), log.query("DROP TABLE t"))
    assert kinds(events)[:2] == ["Begin", "StateRecord"]
    assert kinds(events)[-1] == "Commit"
    assert events[1] == ENDED


T, U, TMP = ("shop", "t"), ("shop", "u"), ("shop", "tmp")


@pytest.mark.parametrize(
    ("statement", "renames"),
    [
        ("RENAME TABLE t TO u", [(T, U)]),
        ("RENAME TABLE `t` TO club.`member`", [(T, ("club", "member"))]),
        ("RENAME TABLE t TO tmp, u TO t, tmp TO u", [(T, TMP), (U, T), (TMP, U)]),
        ("RENAME TABLE t TO elsewhere.t", [(T, ("elsewhere", "t"))]),
        ("RENAME TABLE elsewhere.t TO t", [(("elsewhere", "t"), T)]),
        ("RENAME TABLE t TO audit, elsewhere.t TO t", [(T, ("shop", "audit")), (("elsewhere", "t"), T)]),
        ("ALTER TABLE t RENAME u", [(T, U)]),
        ("ALTER TABLE t ADD COLUMN a INT, RENAME TO u", [(T, U)]),
        ("ALTER TABLE t ADD COLUMN a INT", []),
        ("DROP TABLE t", []),
    ],
)
async def test_renames_are_recorded_in_the_same_transaction(make, log, aside, statement, renames):
    translation = make(parking=aside, listed={T: log.known()})
    events = await translation.of(log.gtid(), log.query(statement))
    assert aside.renames == renames
    assert (MOVED in events) is bool(renames)
    assert (kinds(events)[0], kinds(events)[-1]) == ("Begin", "Commit")


@pytest.mark.parametrize(
    ("statement", "arrived"),
    [
        ("RENAME TABLE audit TO t", {T}),
        ("RENAME TABLE t TO elsewhere.t, audit TO t", {T}),
        ("RENAME TABLE t TO u, audit TO tmp, tmp TO t", {T}),
        ("RENAME TABLE elsewhere.t TO t, audit TO u", {T, U}),
        ("ALTER TABLE audit ADD a INT, RENAME club.member", {("club", "member")}),
        ("RENAME TABLE t TO elsewhere.t, elsewhere.t TO u", set()),
        ("RENAME TABLE t TO tmp, u TO t, tmp TO u", set()),
        ("RENAME TABLE t TO audit", set()),
        ("RENAME TABLE audit TO elsewhere.t", set()),
    ],
)
async def test_a_table_that_was_not_captured_under_its_old_name_is_in_doubt(make, log, aside, statement, arrived):
    """It is parked after doubts have moved with the renames: none moves to the table that had the name before."""
    translation = make(parking=aside, listed={T: log.known(), U: log.known("u")})
    events = await translation.of(log.gtid(), log.query(statement))
    assert aside.reported == [Reason.UNSEEN_ROWS] * bool(arrived)
    assert aside.parked == arrived
    if arrived:
        assert events.index(MOVED) < events.index(PARKED)


async def test_a_rename_of_a_temporary_table_is_none(make, log, aside):
    translation = make(parking=aside)
    await translation.of(log.gtid(), log.query("CREATE TEMPORARY TABLE t (id INT)"))
    await translation.of(log.gtid(), log.query("ALTER TABLE t RENAME TO u"))
    assert aside.renames == []


@pytest.mark.parametrize(
    ("actions", "columns"),
    [
        ("DROP id, ADD id INT AUTO_INCREMENT PRIMARY KEY", {"id"}),
        ("DROP COLUMN IF EXISTS `Id`", {"id"}),
        ("RENAME COLUMN id TO a, RENAME COLUMN a TO id", {"id", "a"}),
        ("CHANGE COLUMN id a INT, CHANGE a id INT", {"id", "a"}),
        ("CHANGE id id BIGINT", set()),
        ("MODIFY id BIGINT, ADD a INT AFTER id", set()),
    ],
)
async def test_columns_that_may_come_back_with_other_values_are_recorded(make, log, aside, actions, columns):
    translation = make(parking=aside, listed={T: log.known()})
    events = await translation.of(log.gtid(), log.query(f"ALTER TABLE t {actions}"))
    assert aside.removed == ({T: columns} if columns else {})
    assert (MOVED in events) is bool(columns)


async def test_a_condemned_transaction_has_begin_records_and_commit_and_no_rows(make, log, aside):
    t, translation = log.table(), make(parking=aside)
    events = transaction(log, t)
    aside.condemned = {(events[1].file, events[1].start)}
    assert kinds(await translation.of(*events, table_maps=[t])) == ["Begin", "Commit"]
    assert aside.begun == [(events[1].file, events[1].start)]
    assert "RowsEvent" in kinds(await translation.of(*transaction(log, t)))


async def test_a_rollback_of_a_condemned_transaction_is_no_further_generation(make, log, aside):
    t, translation = log.table(), make(parking=aside)
    begin, rows, rollback = log.query("BEGIN"), log.rows(t), log.query("ROLLBACK")
    aside.condemned = {(begin.file, begin.start)}
    assert kinds(await translation.of(log.gtid(), begin, rows, rollback, table_maps=[t])) == ["Begin", "Commit"]
    assert aside.reported == []


async def test_the_gtid_of_half_a_transaction_is_not_executed(make, log, aside):
    t, translation = log.table(), make(parking=aside)
    half = log.gtid("3e11fa47-71ca-11e1-9e33-c80aa9429562:1"), log.query("BEGIN"), log.rows(t)
    aside.condemned = {(half[1].file, half[1].start)}
    again = transaction(log, t)
    events = await translation.of(*half, *again, table_maps=[t])
    commits = [event for event in events if isinstance(event, Commit)]
    assert [commit.executed for commit in commits] == ["", f"{log.uuid}:2"]
    assert (commits[0].file, commits[0].end) == (again[0].file, again[0].start)
    assert [event.transaction for event in events if isinstance(event, Begin)] == [1, 2]


async def test_rows_are_held_although_their_table_is_parked_and_emitted_if_it_no_longer_is(make, log, aside):
    t, translation = log.table(), make(parking=aside)
    prepared, committed = xa(log, t)
    aside.parked = {("shop", "t")}
    assert kinds(await translation.of(*prepared, table_maps=[t])) == ["Prepared"]
    aside.parked = set()
    assert "RowsEvent" in kinds(await translation.of(*committed))


async def test_held_rows_of_a_table_that_is_parked_at_xa_commit_are_left_out(make, log, aside):
    t, u, translation = log.table(), log.table("u"), make(parking=aside)
    prepared, committed = xa(log, t, u)
    assert kinds(await translation.of(*prepared, table_maps=[t, u])) == ["Prepared"]
    aside.parked = {("shop", "t")}
    events = await translation.of(*committed)
    assert kinds(events) == ["Begin", "TableDefinition", "RowsEvent", "Decided", "Commit"]
    assert events[2].table == events[1].table.fingerprint
    assert events[1].table.name == "u"


@pytest.mark.parametrize(("verb", "reported"), [("COMMIT", [Reason.INCOMPLETE_ROW_IMAGE]), ("ROLLBACK", [])])
async def test_doubts_about_held_rows_are_reported_only_when_they_are_committed(make, log, aside, verb, reported):
    t, translation = log.table(), make(parking=aside)
    start, rows = log.query("XA START X'31',X'',1"), log.rows(t, complete=False)
    end, prepare = log.query("XA END"), log.xa_prepare()
    await translation.of(log.gtid(), start, rows, end, prepare, table_maps=[t])
    assert aside.reported == []
    events = await translation.of(log.gtid(), log.query(f"XA {verb} X'31',X'',1"))
    assert aside.reported == reported
    assert "RowsEvent" not in kinds(events)
    assert events.count(PARKED) == len(reported)


async def test_a_table_that_is_changed_only_after_the_rollback_is_parked_with_the_others(make, log, aside):
    t, u, translation = log.table(), log.table("u"), make(parking=aside)
    events = transaction(log, t, u)
    aside.condemned = {(events[1].file, events[1].start)}
    assert kinds(await translation.of(*events, table_maps=[t, u])) == ["Begin", "StateRecord", "Commit"]
    assert aside.parked == {("shop", "u")}


async def test_a_doubt_in_an_xa_transaction_of_one_phase_is_reported(make, log, aside):
    t, translation = log.table(), make(parking=aside)
    start, prepare = log.query("XA START X'31',X'',1"), log.xa_prepare("X'31',X'',1", one_phase=True)
    events = log.gtid(), start, log.rows(t, complete=False), log.query("XA END"), prepare
    assert kinds(await translation.of(*events, table_maps=[t])) == ["StateRecord"]
    assert aside.reported == [Reason.INCOMPLETE_ROW_IMAGE]
