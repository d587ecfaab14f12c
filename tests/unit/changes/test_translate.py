"""Binlog events become transactions with captured changes, and positions to resume from."""

import msgspec
import pytest

from databus_core.events import (
    Action,
    Begin,
    Commit,
    DatabaseEvent,
    Heartbeat,
    OversizedRow,
    QueryEvent,
    RowsEvent,
    SchemaDefinition,
    Table,
    TableDefinition,
)
from databus_core.kafka_history import SchemaHistory
from databus_core.progress import Progress

#: commit time of an event without one of its own, in µs
LOGGED_US = 1_700_000_000_000_000


async def test_a_transaction_of_mysql_is_translated_completely(make, log):
    table = log.table()
    events = [
        log.gtid(us=1_700_000_000_000_007),
        log.query("BEGIN", "", thread=42),
        log.rows_query("INSERT INTO t VALUES (1), (1)"),
        log.rows(table, count=2),
        log.rows(table, "update", count=4),
        log.rows(table, "delete"),
        log.xid(77),
    ]
    translation = make(progress=Progress(transaction=6))
    begin, definition, *rows, commit = await translation.of(*events, table_maps=[table])
    assert begin == Begin(7, f"{log.uuid}:1", "binlog.7", 1, 42, 1_700_000_000_000_007, 14, 24)
    assert isinstance(definition, TableDefinition)
    assert definition.table.full_name == "shop.t"
    assert [(event.action, event.row, event.start, event.end, event.query) for event in rows] == [
        (Action.INSERT, 0, 34, 44, b"INSERT INTO t VALUES (1), (1)"),
        (Action.UPDATE, 2, 44, 54, None),
        (Action.DELETE, 4, 54, 64, None),
    ]
    assert {event.table for event in rows} == {definition.table.fingerprint}
    assert [event.rows for event in rows] == [event.rows for event in events[3:6]]
    assert {event.table_id for event in rows} == {events[3].table_id} != {0}
    assert commit == Commit(f"{log.uuid}:1", "binlog.7", 74, 77, start=64)
    assert (translation.translator.rows, translation.translator.transactions) == (7, 1)
    assert translation.translator.reached.time_us == begin.time_us


async def test_a_transaction_of_mariadb_needs_no_begin_and_may_end_with_commit(make, log):
    table = log.table()
    events = log.gtid("5-1-9"), log.rows(table), log.query("COMMIT", thread=3, xid=None)
    begin, _, row, commit = await make(flavor="mariadb").of(*events, table_maps=[table])
    assert begin == Begin(1, "5-1-9", "binlog.7", 1, 0, LOGGED_US, 4, 14)
    assert (row.row, row.query) == (0, None)
    assert commit == Commit("5-1-9", "binlog.7", 34, None, start=24)


async def test_a_transaction_of_mariadb_has_the_time_of_its_commit_which_only_the_gtid_event_has(make, log):
    table = log.table()
    committed = msgspec.structs.replace(log.gtid("5-1-9"), time=1_700_000_003)
    translation = make(flavor="mariadb")
    begin, *_ = await translation.of(committed, log.rows(table), log.xid(), table_maps=[table])
    assert begin.time_us == translation.translator.reached.time_us == LOGGED_US + 3_000_000


async def test_without_gtids_a_transaction_starts_at_its_begin(make, log):
    table = log.table()
    events = log.query("BEGIN"), log.rows(table), log.xid(), log.query("BEGIN"), log.rows(table), log.xid()
    translated = await make().of(*events, table_maps=[table])
    assert [type(event) for event in translated] == [
        *(Begin, TableDefinition, RowsEvent, Commit),
        *(Begin, RowsEvent, Commit),
    ]
    assert [event.executed for event in translated if isinstance(event, Commit)] == ["", ""]


async def test_a_transaction_inherits_nothing_from_the_previous_one(make, log):
    """Not its GTID, its thread, its row numbers or its statement."""
    table = log.table()
    first = log.gtid(), log.query("BEGIN", thread=42), log.rows_query("INSERT"), log.rows(table), log.xid()
    translation = make()
    await translation.of(*first, table_maps=[table])
    begin, row, commit = await translation.of(
        log.gtid(""), log.query("XA START X'31'", thread=0), log.rows(table), log.xid()
    )
    assert (begin.gtid, begin.thread_id, row.row, row.query, commit.executed) == ("", 0, 0, None, "")
    begin, row, commit = await translation.of(log.query("BEGIN", thread=7), log.rows(table), log.xid())
    assert (begin.gtid, begin.thread_id, begin.start, row.row, commit.executed) == ("", 7, 94, 0, "")
    begin, *_ = await translation.of(log.query("CREATE TABLE u (id INT)", thread=3))
    assert (begin.thread_id, begin.start, begin.end) == (3, 124, 134)


async def test_a_transaction_without_a_begin_does_not_inherit_the_previous_thread(make, log):
    """MariaDB logs no BEGIN, which would name the thread. Only the first transaction here has a BEGIN."""
    table = log.table()
    translation = make(flavor="mariadb")
    await translation.of(log.query("BEGIN", thread=42), log.rows(table), log.xid(), table_maps=[table])
    begin, *_ = await translation.of(log.gtid("5-1-2"), log.rows(table), log.xid())
    assert begin.thread_id == 0


async def test_an_oversized_row_counts_in_the_row_numbers(make, log):
    table = log.table()
    statement = log.gtid(), log.query("BEGIN"), log.rows_query("INSERT"), log.oversized(table)
    events = *statement, log.rows(table), log.xid()
    begin, definition, oversized, row, commit = await make().of(*events, table_maps=[table])
    assert oversized == OversizedRow(definition.table.fingerprint, Action.INSERT, 0, 34, 44, 1 << 30)
    assert (row.row, row.query, begin.transaction, commit.end) == (1, None, 1, 64)


@pytest.mark.parametrize("start", ["XA START X'31',X'',1", "XA BEGIN X'31',X'',1"])
async def test_an_xa_transaction_that_is_committed_in_one_phase_is_published(make, log, start):
    table = log.table()
    events = log.gtid(), log.query(start, thread=8), log.rows(table), log.query("XA END X'31',X'',1")
    translation = make()
    assert await translation.of(*events, table_maps=[table]) == []
    begin, _, rows, commit = await translation.of(log.xa_prepare(one_phase=True))
    assert (begin.thread_id, begin.start, rows.start) == (8, 14, 24)
    assert commit == Commit(f"{log.uuid}:1", "binlog.7", 54, None, start=44)


async def test_transactions_without_captured_changes_advance_the_position(make, log):
    """So do statements, empty XA transactions and a new file. Each position is reported once."""
    translation = make()
    assert translation.translator.reached.take_heartbeat() is None
    assert await translation.of(log.gtid(), log.query("BEGIN")) == []
    assert translation.translator.reached.take_heartbeat() is None
    assert await translation.of(log.xid()) == []
    assert translation.translator.reached.take_heartbeat() == Heartbeat(f"{log.uuid}:1", "binlog.7", 34, LOGGED_US)
    assert translation.translator.reached.take_heartbeat() is None
    grant, xa, rolled_back = log.query("GRANT ALL ON x.* TO u"), log.query("XA START X'31'"), log.query("BEGIN")
    await translation.of(log.gtid(), grant, log.gtid(), xa, log.xa_prepare(), log.gtid(), rolled_back)
    await translation.of(log.query("ROLLBACK"))
    assert translation.translator.reached.take_heartbeat() == Heartbeat(f"{log.uuid}:2-4", "binlog.7", 114, LOGGED_US)
    assert await translation.of(log.rotate("binlog.8", artificial=True)) == []
    assert translation.translator.reached.take_heartbeat() is None
    assert await translation.of(log.rotate("binlog.8")) == []
    assert translation.translator.reached.take_heartbeat() == Heartbeat("", "binlog.8", 4, LOGGED_US)
    assert await translation.of(log.gtid(us=LOGGED_US + 7), log.query("FLUSH TABLES")) == []
    assert translation.translator.reached.take_heartbeat() == Heartbeat(f"{log.uuid}:5", "binlog.7", 154, LOGGED_US + 7)


async def test_a_commit_reports_the_transactions_without_captured_changes_before_it(make, log):
    table = log.table()
    before = log.gtid(), log.query("FLUSH TABLES"), log.gtid(), log.query("FLUSH TABLES")
    events = *before, log.gtid(), log.query("BEGIN"), log.rows(table), log.xid()
    translation = make()
    *_, commit = await translation.of(*events, table_maps=[table])
    assert commit.executed == f"{log.uuid}:1-3"
    assert translation.translator.reached.take_heartbeat() is None
    *_, commit = await translation.of(log.gtid(), log.query("BEGIN"), log.rows(table), log.xid(), table_maps=[table])
    assert commit.executed == f"{log.uuid}:4"


async def test_positions_have_no_gtids_while_the_server_may_write_transactions_without_gtids(make, log):
    table = log.table()
    events = log.gtid(), log.query("FLUSH TABLES"), log.gtid(), log.query("BEGIN"), log.rows(table), log.xid()
    translation = make(gtids=False)
    begin, *_, commit = await translation.of(*events, table_maps=[table])
    assert (begin.gtid, commit.executed) == (f"{log.uuid}:2", "")


async def test_ddl_is_published_with_the_table_before_and_after_it(make, log):
    translation = make()
    create = log.gtid(), log.query("CREATE TABLE t (id INT)", xid=3)
    begin, definition, query, commit = await translation.of(*create)
    assert begin == Begin(1, f"{log.uuid}:1", "binlog.7", 1, 9, LOGGED_US, 14, 24)
    created = definition.table
    text = b"CREATE TABLE `shop`.t (id INT)"
    assert query == QueryEvent(created.fingerprint, Action.CREATE, text, 14, 24, "")
    assert commit == Commit(f"{log.uuid}:1", "binlog.7", 24, 3, start=14)
    text = b"ALTER TABLE shop.t ADD c INT COMMENT '\xff'"
    _, definition, query, _ = await translation.of(log.gtid(), log.query(text))
    assert [column.name for column in definition.table.columns] == ["id", "c"]
    assert query == QueryEvent(definition.table.fingerprint, Action.ALTER, text, 34, 44, created.fingerprint)


async def test_ddl_on_a_table_of_the_history_is_preceded_by_the_old_and_the_new_definition(make, log):
    """Formats also need the old definition, which has not been emitted before."""
    translation = make(history=SchemaHistory({("shop", "t"): log.known()}))
    _, before, after, query, _ = await translation.of(log.gtid(), log.query("ALTER TABLE t ADD c INT"))
    assert before == TableDefinition(log.known())
    assert (query.before, query.table) == (before.table.fingerprint, after.table.fingerprint)


async def test_a_rename_is_published_for_the_old_and_the_new_name(make, log):
    translation = make()
    _, definition, *_ = await translation.of(log.gtid(), log.query("CREATE TABLE t (id INT)"))
    old = definition.table
    _, left, new, appeared, gone, _ = await translation.of(log.gtid(), log.query("RENAME TABLE t TO u"))
    assert (left.table, left.before) == (old.fingerprint, old.fingerprint)
    assert (new.table.full_name, new.table.columns) == ("shop.u", old.columns)
    assert (appeared.table, appeared.before) == (new.table.fingerprint, "")
    assert gone.table == Table(schema="shop", name="t", columns=())


async def test_a_statement_that_changes_no_definition_is_published(make, log):
    translation = make()
    _, definition, *_ = await translation.of(log.gtid(), log.query("CREATE TABLE t (id INT)"))
    begin, query, commit = await translation.of(log.gtid(), log.query("TRUNCATE t"))
    assert (begin.transaction, query.action, commit.executed) == (2, Action.TRUNCATE, f"{log.uuid}:2")
    assert query.table == query.before == definition.table.fingerprint


async def test_an_unknown_table_that_is_dropped_has_no_columns(make, log):
    _, definition, query, _ = await make().of(log.gtid(), log.query("DROP TABLE t"))
    assert definition.table == Table(schema="shop", name="t", columns=())
    assert (query.table, query.before) == (definition.table.fingerprint, "")


async def test_a_replaced_table_is_dropped_with_its_old_definition_and_created_with_the_new_one(make, log):
    translation = make(history=SchemaHistory(tables={("shop", "t"): log.known(columns="id")}))
    _, old, drop, new, create, _ = await translation.of(log.gtid(), log.query("CREATE OR REPLACE TABLE t (a INT)"))
    assert [[c.name for c in definition.table.columns] for definition in (old, new)] == [["id"], ["a"]]
    assert (drop.action, drop.table) == (Action.DROP, old.table.fingerprint)
    assert (create.action, create.table) == (Action.CREATE, new.table.fingerprint)


async def test_definitions_in_a_captured_schema_are_emitted_even_if_no_captured_table_changes(make, log):
    translation = make()
    begin, _, schema, commit = await translation.of(log.gtid(), log.query("CREATE DATABASE shop CHARSET latin1"))
    assert (begin.transaction, schema) == (1, SchemaDefinition("shop", "latin1"))
    begin, definition, commit = await translation.of(log.gtid(), log.query("CREATE TABLE audit (c CHAR(1))"))
    assert definition.table.columns[0].charset == "latin1"
    assert commit.end == 44
    assert await translation.of(log.gtid(), log.query("CREATE TABLE other.t (c CHAR(1))", "other")) == []


async def test_ddl_on_a_database_is_published_with_its_charset_and_the_tables_that_it_drops(make, log):
    translation = make(history=SchemaHistory({("shop", "t"): log.known(), ("shop", "audit"): log.known(name="audit")}))
    drop, create = "DROP DATABASE shop", "CREATE DATABASE shop CHARSET latin1"
    _, table, dropped, *_ = await translation.of(log.gtid(), log.query(drop, ""))
    assert table == TableDefinition(log.known())
    assert dropped == DatabaseEvent("shop", Action.DROP, drop.encode(), 14, 24, None, (table.table.fingerprint,))
    _, created, _, _ = await translation.of(log.gtid(), log.query(create, ""))
    assert created == DatabaseEvent("shop", Action.CREATE, create.encode(), 34, 44, "latin1")
    assert await translation.of(log.gtid(), log.query("CREATE DATABASE other", "")) == []


async def test_an_alter_in_two_phases_is_published_only_at_its_commit(make, log):
    alter = "ALTER TABLE t ADD c INT"
    translation = make(flavor="mariadb", listed={("shop", "t"): log.known(columns="id c")})
    for phase in ("start", "rollback"):
        assert await translation.of(log.gtid("5-1-1", standalone=True, alter=phase), log.query(alter)) == []
    *_, query, commit = await translation.of(log.gtid("5-1-2", standalone=True, alter="commit"), log.query(alter))
    assert (query.action, commit.executed) == (Action.ALTER, "5-1-2")


async def test_a_statement_inside_a_transaction_does_not_end_it(make, log):
    """For example CREATE TABLE … START TRANSACTION, which MySQL logs for CREATE TABLE … SELECT."""
    table = log.table()
    create = log.query("CREATE TABLE t (id INT NOT NULL PRIMARY KEY) START TRANSACTION")
    translation = make()
    translated = await translation.of(log.gtid(), log.query("BEGIN"), create, log.query("SAVEPOINT s"))
    assert [type(event) for event in translated] == [Begin, TableDefinition, QueryEvent]
    row, commit = await translation.of(log.rows(table), log.xid(), table_maps=[table])
    assert (row.table, row.row, commit.end) == (translated[1].table.fingerprint, 0, 64)


async def test_a_definition_is_emitted_again_only_after_a_change(make, log):
    old, new = log.table(), log.table(columns="id c")
    translation = make()
    events = []
    for table in (old, old, new, new, old):
        transaction = log.gtid(), log.query("BEGIN"), log.rows(table), log.xid()
        events += await translation.of(*transaction, table_maps=[table])
    emitted = [event.table for event in events if isinstance(event, TableDefinition)]
    assert [[column.name for column in table.columns] for table in emitted] == [["id"], ["id", "c"], ["id"]]
    assert all(isinstance(table, Table) for table in emitted)
