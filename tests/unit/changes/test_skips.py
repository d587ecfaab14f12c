"""A transaction that an operator wants to skip: its rows are marked, its tables are parked, the translation goes on."""

from contextlib import asynccontextmanager

import pytest

from databus_binlog import Position
from databus_changes.prepared import PreparedTransactions
from databus_core.errors import FatalError, GenerationLost, Refusal, SourceRefused, UnknownTable
from databus_core.events import Skipped, StateRecord
from databus_core.progress import PreparedTransaction, Progress
from databus_core.runtime import Health
from databus_core.skips import Skip
from databus_core.table_states import TableStates
from databus_reader import parking as module
from databus_reader.backfill.states import BackfillStates
from databus_reader.parking import Parking
from unit.reader.backfilled import settings

T, U, XID = ("shop", "t"), ("shop", "u"), "X'31',X'',1"


class Baseline:
    read = True

    def has_read(self, error):
        return self.read


class Skipping:
    """The reader's parking, with requests to skip transactions."""

    def __init__(self, *, on_doubt="stop", heal="auto"):
        chosen = settings(doubt={"on_doubt": on_doubt, "heal": heal})
        self.baseline, self.kafka = Baseline(), TableStates()
        self.parking = Parking(chosen, self.baseline, Health())
        self.parking.begin_generation("db1", "server", BackfillStates(self.kafka))

    def skip(self, first):
        """Request to skip the transaction that begins with an event. Return the record that deletes the request."""
        gtid = getattr(first, "gtid", "")
        skip = Skip(gtid=gtid, server="server", file=first.file, offset=first.start, requested_us=1)
        self.kafka.apply(skip.key, b'{"server":"server","file":"%s","offset":%d,"requested_us":1,"gtid":"%s"}'
                         % (first.file.encode(), first.start, gtid.encode()))  # fmt: skip
        return StateRecord(skip.key, None)

    @property
    def parked(self):
        return sorted(self.kafka.doubts)


@pytest.fixture
def skipping():
    return Skipping()


@pytest.fixture(autouse=True)
def server(monkeypatch):
    """A server that has the tables t and u."""

    @asynccontextmanager
    async def connect_source(*_):
        yield

    async def read_names(_):
        return [T, U]

    monkeypatch.setattr(module, "connect_source", connect_source)
    monkeypatch.setattr(module, "read_names", read_names)


def kinds(events):
    return [type(event).__name__ for event in events]


def doubtful(log, t, u, end=None):
    """Return a transaction with a row of t, a row in doubt of u, and one more row of u."""
    return log.gtid(), log.query("BEGIN"), log.rows(t), log.rows(u, complete=False), log.rows(u), end or log.xid()


def transaction(log, table):
    return log.gtid(), log.query("BEGIN"), log.rows(table), log.xid()


MARKED = ["Begin", "Skipped", "TableDefinition", "RowsEvent", "TableDefinition", "RowsEvent"]


async def test_the_rows_are_marked_and_their_tables_are_parked_with_the_end_of_the_transaction(make, log, skipping):
    t, u, translation = log.table(), log.table("u"), make(parking=skipping.parking)
    events = doubtful(log, t, u)
    deleted = skipping.skip(events[0])
    translated = await translation.of(*events, table_maps=[t, u])
    assert kinds(translated[:6]) == MARKED
    assert {*kinds(translated[6:-1])} == {"StateRecord"}
    assert translated[-2] == deleted
    assert translated[-1].executed == f"{log.uuid}:1"
    assert skipping.parked == [T, U]
    assert {each.reason for each in skipping.kafka.doubts.values()} == {"skipped"}
    assert {each.name for each in skipping.kafka.unfinished()} == {T, U}


async def test_only_the_named_transaction_is_skipped(make, log, skipping):
    t, u, translation = log.table(), log.table("u"), make(parking=skipping.parking)
    skipping.skip(log.gtid())
    events = doubtful(log, t, u)
    with pytest.raises(GenerationLost, match="the next generation stops before the transaction"):
        await translation.of(*events, table_maps=[t, u])
    skipping.parking.begin_generation("db1", "server", BackfillStates(skipping.kafka))
    with pytest.raises(FatalError, match=f"run `databus pipeline skip --transaction {log.uuid}:2`; to start over"):
        await make(parking=skipping.parking).of(*events[:1])
    assert skipping.parked == []


async def test_a_request_is_for_one_time(make, log, skipping):
    t, u, translation = log.table(), log.table("u"), make(parking=skipping.parking)
    events = doubtful(log, t, u)
    skipping.skip(events[0])
    await translation.of(*events, table_maps=[t, u])
    assert not skipping.kafka.skips
    with pytest.raises(FatalError):
        await translation.of(*events, table_maps=[t, u])


@pytest.mark.parametrize("on_doubt", ["stop", "park"])
async def test_a_statement_that_cannot_be_read_parks_all_tables(make, log, on_doubt):
    skipping = Skipping(on_doubt=on_doubt)
    t, translation = log.table(), make(parking=skipping.parking)
    events = log.gtid(), log.query("ALTER TABLE t COMMENT 'no end")
    with pytest.raises(FatalError, match="databus pipeline skip --transaction"):
        await make(parking=skipping.parking).of(*events)
    deleted = skipping.skip(events[0])
    translated = await translation.of(*events)
    assert kinds(translated)[:2] == ["Begin", "Skipped"]
    assert translated[-2:-1] == [deleted]
    assert kinds(translated)[-1] == "Commit"
    assert skipping.parked == [T, U]
    assert kinds(await translation.of(*transaction(log, t), table_maps=[t])) == []


async def test_rows_outside_a_transaction_are_marked_up_to_the_next_transaction(make, log, skipping):
    t, u, translation = log.table(), log.table("u"), make(parking=skipping.parking, flavor="mariadb")
    first, rows = log.gtid("0-1-1", standalone=True), [log.rows(t), log.rows(t, complete=False)]
    after = log.gtid("0-1-2")
    deleted = skipping.skip(first)
    translated = await translation.of(first, *rows, after, log.rows(u), log.xid(), table_maps=[t, u])
    commit = next(index for index, each in enumerate(kinds(translated)) if each == "Commit")
    assert kinds(translated)[:5] == ["Begin", "Skipped", "TableDefinition", "RowsEvent", "StateRecord"]
    assert translated[commit - 1] == deleted
    assert (translated[commit].executed, translated[commit].end) == ("0-1-1", after.start)
    assert kinds(translated)[commit + 1 :] == ["Begin", "TableDefinition", "RowsEvent", "Commit"]
    assert skipping.parked == [T]


async def test_rows_before_a_rollback_are_marked_and_the_generation_goes_on(make, log):
    skipping = Skipping(on_doubt="park")
    t, u, translation = log.table(), log.table("u"), make(parking=skipping.parking)
    events = doubtful(log, t, u, log.query("ROLLBACK"))
    skipping.skip(events[0])
    translated = await translation.of(*events, table_maps=[t, u])
    assert kinds(translated)[:6] == MARKED
    assert kinds(translated)[-1] == "Commit"


async def test_a_transaction_without_an_end_ends_where_the_next_one_begins(make, log, skipping):
    t, u, translation = log.table(), log.table("u"), make(parking=skipping.parking)
    half, whole = (log.gtid(), log.query("BEGIN"), log.rows(t)), transaction(log, u)
    deleted = skipping.skip(half[0])
    translated = await translation.of(*half, *whole, table_maps=[t, u])
    first, last = (event for event in translated if type(event).__name__ == "Commit")
    assert (first.executed, first.end, last.executed) == ("", whole[0].start, f"{log.uuid}:2")
    assert translated[translated.index(first) - 1] == deleted
    assert skipping.parked == [T]


async def test_a_group_without_end_and_rows_deletes_the_request(make, log, skipping):
    events = [log.gtid(), log.query("BEGIN"), log.gtid()]
    deleted = skipping.skip(events[0])
    translated = await make(parking=skipping.parking).of(*events)
    assert kinds(translated) == ["Begin", "Skipped", "StateRecord", "Commit"]
    assert translated[2] == deleted


async def test_a_log_without_gtids_has_transactions_by_position(make, log, skipping):
    t, translation = log.table(), make(parking=skipping.parking)
    begin, rows, end = log.query("BEGIN"), log.rows(t, complete=False), log.xid()
    with pytest.raises(FatalError, match=f"skip --transaction binlog.7:{begin.start}`"):
        await make(parking=skipping.parking).of(begin, rows, end, table_maps=[t])
    skipping.skip(begin)
    assert kinds(await translation.of(begin, rows, end, table_maps=[t]))[:2] == ["Begin", "Skipped"]
    statement = log.query("ALTER TABLE t COMMENT 'no end")
    skipping.skip(statement)
    assert kinds(await translation.of(statement))[:2] == ["Begin", "Skipped"]


async def test_a_table_is_looked_up_before_its_rows_are_given_up(make, log, skipping):
    nameless, translation = log.nameless(), make(parking=skipping.parking)
    events = transaction(log, nameless)
    skipping.skip(events[0])
    skipping.baseline.read = False
    with pytest.raises(UnknownTable):
        await translation.of(*events, table_maps=[nameless])


async def test_ddl_in_a_skipped_transaction_takes_effect_and_its_table_is_not_parked(make, log, skipping):
    t, translation = log.table(), make(parking=skipping.parking)
    await translation.of(*transaction(log, t), table_maps=[t])
    events = log.gtid(), log.query("ALTER TABLE t ADD COLUMN a INT")
    skipping.skip(events[0])
    assert "QueryEvent" in kinds(await translation.of(*events))
    assert translation.tracker.existing(T).columns[-1].name == "a"
    assert skipping.parked == []


async def test_a_table_that_is_created_and_filled_by_a_skipped_transaction_is_parked(make, log, skipping):
    """As MySQL logs CREATE TABLE … SELECT."""
    t, translation = log.table(), make(parking=skipping.parking)
    create = log.query("CREATE TABLE t (id INT NOT NULL PRIMARY KEY) START TRANSACTION")
    events = log.gtid(), log.query("BEGIN"), create, log.rows(t), log.rows(t), log.xid()
    skipping.skip(events[0])
    assert "QueryEvent" in kinds(await translation.of(*events, table_maps=[t]))
    assert skipping.parked == [T]


# --- XA ---------------------------------------------------------------------------------------------------------------


class PurgedLog:
    """A binlog that does not have what was prepared."""

    def __init__(self, reason=Refusal.PURGED):
        self.reason = reason

    async def search(self, xid, commit):
        raise SourceRefused(self.reason, "it is gone")

    async def read(self, transaction):
        raise SourceRefused(self.reason, "it is gone")


LISTED = PreparedTransaction(
    xid=XID, gtid="", position=Position("", "binlog.1", 4), server="s", in_order=True, time_us=1
)


@pytest.mark.parametrize("listed", [[], [LISTED]])
async def test_an_xa_commit_whose_rows_are_gone_parks_all_tables(make, log, skipping, listed):
    def prepared():
        return PreparedTransactions(listed, PurgedLog())

    events = log.gtid(), log.query(f"XA COMMIT {XID}")
    with pytest.raises(SourceRefused, match=f"it is gone; to leave out .*--transaction {log.uuid}:1`") as refused:
        await make(parking=skipping.parking, prepared=prepared()).of(*events)
    assert refused.value.doubts_all
    skipping.skip(events[0])
    translation = make(parking=skipping.parking, prepared=prepared(), progress=Progress(prepared=tuple(listed)))
    translated = await translation.of(*events)
    assert kinds(translated)[:3] == ["Begin", "Skipped", "Decided" if listed else "StateRecord"]
    assert kinds(translated)[-1] == "Commit"
    assert (skipping.parked, skipping.kafka.skips) == ([T, U], {})


async def test_rows_on_a_host_that_is_only_behind_are_not_gone(make, log, skipping):
    prepared = PreparedTransactions([LISTED], PurgedLog(Refusal.BEHIND))
    events = log.gtid(), log.query(f"XA COMMIT {XID}")
    skipping.skip(events[0])
    with pytest.raises(SourceRefused, match=r"^it is gone$"):
        await make(parking=skipping.parking, prepared=prepared).of(*events)


async def test_an_xa_commit_marks_the_rows_that_were_prepared(make, log, skipping):
    t, u, translation = log.table(), log.table("u"), make(parking=skipping.parking)
    rows = log.rows(t), log.rows(u, complete=False)
    prepare = log.gtid(), log.query(f"XA START {XID}"), *rows, log.query("XA END"), log.xa_prepare(XID)
    skipping.skip(prepare[0])  # has no effect: the rows count only when they are committed
    assert kinds(await translation.of(*prepare, table_maps=[t, u])) == ["Prepared"]
    commit = log.gtid(), log.query(f"XA COMMIT {XID}")
    skipping.skip(commit[0])
    translated = await translation.of(*commit)
    assert kinds(translated)[:4] == ["Begin", "Skipped", "TableDefinition", "RowsEvent"]
    assert skipping.parked == [T, U]


async def test_an_xa_transaction_of_one_phase_is_skipped_as_a_whole(make, log, skipping):
    t, u, translation = log.table(), log.table("u"), make(parking=skipping.parking)
    rows = log.rows(t), log.rows(u, complete=False)
    end = log.query("XA END"), log.xa_prepare(XID, one_phase=True)
    events = log.gtid(), log.query(f"XA START {XID}"), *rows, *end
    skipping.skip(events[0])
    translated = await translation.of(*events, table_maps=[t, u])
    assert kinds(translated)[:4] == ["Begin", "Skipped", "TableDefinition", "RowsEvent"]
    assert translated.count(Skipped()) == 1
    assert skipping.parked == [T, U]


async def test_an_xa_transaction_without_an_end_is_skipped_without_its_rows(make, log, skipping):
    """The server crashed before XA PREPARE, so the rows never take effect."""
    t, u, translation = log.table(), log.table("u"), make(parking=skipping.parking)
    half = log.gtid(), log.query(f"XA START {XID}"), log.rows(t)
    skipping.skip(half[0])
    translated = await translation.of(*half, *transaction(log, u), table_maps=[t, u])
    assert kinds(translated)[:4] == ["Begin", "Skipped", "StateRecord", "Commit"]
    assert skipping.parked == []


async def test_an_xa_transaction_without_captured_rows_deletes_the_request(make, log, skipping):
    events = log.gtid("0-1-1", xa=True), log.query("XA END"), log.xa_prepare(XID, one_phase=True)
    skipping.skip(events[0])
    translated = await make(parking=skipping.parking, flavor="mariadb").of(*events)
    assert kinds(translated) == ["Begin", "Skipped", "StateRecord", "Commit"]
    assert skipping.parked == []


@pytest.mark.parametrize("statement", ["ALTER TABLE t ENGINE=BLACKHOLE, RENAME TO u", "RENAME TABLE audit TO u"])
async def test_a_statement_that_renames_its_table_parks_the_new_name(make, log, skipping, statement):
    listed = {T: log.known(), U: log.known("u")}
    first = log.gtid()
    skipping.skip(first)
    await make(parking=skipping.parking, listed=listed).of(first, log.query(statement))
    assert skipping.parked == [U]
