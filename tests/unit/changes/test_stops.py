"""A doubt is a case in which the binlog does not show what happened to captured tables.

A strict translation raises the doubt's error; a lenient translation leaves out only what is in doubt.
"""

import pytest

from databus_binlog import FieldType
from databus_changes.doubts import Reason
from databus_core.errors import FatalError, SchemaMismatch, StatementFormat, UnknownTable
from databus_core.events import Begin, Commit, OversizedRow, QueryEvent, RowsEvent
from databus_core.kafka_history import SchemaHistory
from databus_core.settings import Source

SHOP_T = frozenset({("shop", "t")})


class Case:
    """Translates the same events strictly and leniently."""

    def __init__(self, make, **options):
        self._make = make
        self._options = options

    async def assert_stops(self, events, tables, error, text):
        """Translate strictly, and expect an error of exactly this type with this text."""
        with pytest.raises(FatalError, match=text) as stopped:
            await self._make(**self._options).of(*events, table_maps=tables)
        assert type(stopped.value) is error
        assert stopped.value.fields["position"].startswith("binlog.7:")

    async def translate_leniently(self, events, tables, *doubts):
        """Translate leniently, expect doubts with these reasons, offsets and tables, and return the change events."""
        translation = self._make(**self._options, lenient=True)
        translated = await translation.of(*events, table_maps=tables)
        assert [(doubt.reason, doubt.offset, doubt.tables) for doubt in translation.doubts] == list(doubts)
        assert {doubt.file for doubt in translation.doubts} <= {"binlog.7"}
        self.heartbeat = translation.translator.reached.take_heartbeat()
        return translated


@pytest.fixture
def case(make):
    return lambda **options: Case(make, **options)


def shape(events):
    """Return "begin", "commit", or the start offset of rows or a statement for each event; leave out definitions."""
    kinds = {Begin: "begin", Commit: "commit"}
    return [
        kinds.get(type(event)) or event.start
        for event in events
        if isinstance(event, Begin | Commit | RowsEvent | OversizedRow | QueryEvent)
    ]


def transaction(log, *tables, rows=None):
    """Return the events of a MySQL transaction with rows of these tables."""
    return [log.gtid(), log.query("BEGIN", ""), *[(rows or log.rows)(table) for table in tables], log.xid()]


@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
async def test_a_transaction_without_an_end_stops_the_translation(case, log, flavor):
    table, other = log.table(), log.table("u")
    gtids = ["5-1-1", "5-1-2"] if flavor == "mariadb" else [None, None]
    begin = [log.query("BEGIN")] if flavor == "mysql" else []
    first = [log.gtid(gtids[0]), *begin, log.rows(table), log.rows(other)]
    begin = [log.query("BEGIN")] if flavor == "mysql" else []
    second = [log.gtid(gtids[1]), *begin, log.rows(table), log.xid()]
    text = (
        rf"^a transaction before binlog\.7:{second[0].start} has no end, as after a crash of the server; to start over"
    )
    await case(flavor=flavor).assert_stops(first + second, [table, other], FatalError, text)
    doubt = Reason.UNFINISHED_TRANSACTION, second[0].start, SHOP_T | {("shop", "u")}
    translated = await case(flavor=flavor).translate_leniently(first + second, [table, other], doubt)
    assert shape(translated) == ["begin", first[-2].start, first[-1].start, "begin", second[-2].start, "commit"]
    assert translated[-1].executed == second[0].gtid


async def test_without_gtids_a_transaction_without_an_end_stops_the_translation_at_the_next_begin(case, log):
    table = log.table()
    events = log.query("BEGIN"), log.rows(table), log.query("BEGIN"), log.rows(table), log.xid()
    await case().assert_stops(events, [table], FatalError, r"a transaction before binlog\.7:24 has no end")
    doubt = Reason.UNFINISHED_TRANSACTION, 24, SHOP_T
    assert shape(await case().translate_leniently(events, [table], doubt)) == ["begin", 14, "begin", 34, "commit"]


async def test_a_doubt_about_a_transaction_also_names_the_tables_of_its_statements(case, log):
    """Here, CREATE TABLE … START TRANSACTION is followed neither by rows nor by an end."""
    create = log.gtid(), log.query("BEGIN"), log.query("CREATE TABLE t (id INT) START TRANSACTION")
    translated = await case().translate_leniently(
        [*create, log.gtid()], [], (Reason.UNFINISHED_TRANSACTION, 34, SHOP_T)
    )
    assert shape(translated) == ["begin", 24]


async def test_a_transaction_without_captured_rows_needs_no_end(case, log):
    table = log.table()
    events = log.gtid(), log.query("BEGIN"), *transaction(log, table)
    assert shape(await case().translate_leniently(events, [table])) == ["begin", 44, "commit"]


@pytest.mark.parametrize("oversized", [False, True])
async def test_rows_outside_a_transaction_stop_the_translation(case, log, oversized):
    """The rows come before the first transaction, after the end of a transaction, or after a GTID without a BEGIN."""
    table = log.table()
    rows = log.oversized if oversized else log.rows
    events = rows(table), *transaction(log, table), rows(table), log.gtid(), rows(table)
    text = r"^rows of shop\.t outside a transaction at binlog\.7:4; to start over"
    await case().assert_stops(events, [table], FatalError, text)
    doubts = [(Reason.ROWS_OUTSIDE_TRANSACTION, offset, SHOP_T) for offset in (4, 54, 74)]
    assert shape(await case().translate_leniently(events, [table], *doubts)) == ["begin", 34, "commit"]


async def test_rows_without_column_names_outside_a_transaction_stop_the_translation(case, log):
    table, unknown = log.table("u"), log.nameless()
    events = log.rows(unknown), *transaction(log, table)
    text = r"^rows of shop\.t outside a transaction at binlog\.7:4; to start over"
    await case().assert_stops(events, [table, unknown], FatalError, text)
    doubt = Reason.ROWS_OUTSIDE_TRANSACTION, 4, SHOP_T
    assert shape(await case().translate_leniently(events, [table, unknown], doubt)) == ["begin", 34, "commit"]


async def test_a_doubt_about_a_transaction_names_no_table_of_the_previous_transaction(case, log):
    table, other = log.table(), log.table("u")
    events = *transaction(log, other), *transaction(log, table)[:-1], log.query("ROLLBACK")
    doubt = Reason.ROLLBACK, events[-1].start, SHOP_T
    await case().translate_leniently(events, [table, other], doubt)


async def test_rows_after_a_standalone_gtid_stop_the_translation(case, log):
    table = log.table()
    events = log.gtid("5-1-1", standalone=True), log.rows(table)
    await case(flavor="mariadb").assert_stops(events, [table], FatalError, "outside a transaction")
    assert (
        await case(flavor="mariadb").translate_leniently(events, [table], (Reason.ROWS_OUTSIDE_TRANSACTION, 14, SHOP_T))
        == []
    )


async def test_rows_that_lack_columns_stop_the_translation(case, log):
    table, other = log.table(), log.table("u")
    gtid, begin = log.gtid(), log.query("BEGIN")
    lacking = log.rows_query("UPDATE t"), log.rows(table, "update", 2, complete=False)
    events = gtid, begin, *lacking, log.rows(other), log.xid()
    text = r"^rows of shop\.t at binlog\.7:34 lack columns \(id\); set binlog_row_image=FULL .*; to start over"
    await case().assert_stops(events, [table, other], FatalError, text)
    translated = await case().translate_leniently(events, [table, other], (Reason.INCOMPLETE_ROW_IMAGE, 34, SHOP_T))
    assert shape(translated) == ["begin", 44, "commit"]
    [rows] = [event for event in translated if isinstance(event, RowsEvent)]
    assert (rows.row, rows.query) == (0, None)


@pytest.mark.parametrize("column", ["!hidden!by_sum!0!0", "2a86b4202bcad184a408c5a79e5c0adf"])
async def test_rows_that_lack_the_column_of_a_functional_index_do_not_blame_binlog_row_image(case, log, column):
    table = log.table(columns=column)
    events = log.gtid(), log.query("BEGIN"), log.rows(table, complete=False)
    text = rf"^rows of shop\.t at binlog\.7:24 lack columns \({column}\); this looks like .* functional index"
    await case().assert_stops(events, [table], FatalError, text)


@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
async def test_a_rollback_after_rows_stops_the_translation(case, log, flavor):
    table, other = log.table(), log.table("u")
    gtids = ["5-1-1", "5-1-2"] if flavor == "mariadb" else [None, None]
    first = log.gtid(gtids[0]), log.query("BEGIN"), log.rows(table), log.rows(other), log.query("ROLLBACK")
    second = log.gtid(gtids[1]), log.query("BEGIN"), log.rows(table), log.xid()
    text = (
        r"^ROLLBACK after captured rows at binlog\.7:44: the binlog does not show which of these rows take effect; to "
    )
    await case(flavor=flavor).assert_stops(first + second, [table, other], FatalError, text)
    doubt = Reason.ROLLBACK, 44, SHOP_T | {("shop", "u")}
    translated = await case(flavor=flavor).translate_leniently(first + second, [table, other], doubt)
    assert shape(translated) == ["begin", 24, 34, "begin", 74, "commit"]


@pytest.mark.parametrize("statement", ["ROLLBACK TO `s`", "rollback to savepoint s", "ROLLBACK /* of 1 */"])
async def test_after_a_rollback_that_may_be_partial_the_rest_of_the_transaction_is_left_out(case, log, statement):
    table, unknown = log.table(), log.nameless("u")
    head = log.gtid(), log.query("BEGIN"), log.rows(table), log.query(statement), log.rows(table)
    events = *head, log.query("ROLLBACK TO t"), log.rows(table, complete=False), log.rows(unknown), log.xid()
    await case().assert_stops(events, [table, unknown], FatalError, r"ROLLBACK after captured rows at binlog\.7:34")
    case = case()
    assert shape(await case.translate_leniently(events, [table, unknown], (Reason.ROLLBACK, 34, SHOP_T))) == [
        "begin",
        24,
    ]
    assert (case.heartbeat.executed, case.heartbeat.end) == (f"{log.uuid}:1", 94)


async def test_a_transaction_that_is_already_in_doubt_may_lack_its_end(case, log):
    table = log.table()
    head = log.gtid(), log.query("BEGIN"), log.rows(table), log.query("ROLLBACK TO s")
    events = *head, *transaction(log, table)
    translated = await case().translate_leniently(events, [table], (Reason.ROLLBACK, 34, SHOP_T))
    assert shape(translated) == ["begin", 24, "begin", 64, "commit"]


async def test_a_rollback_without_captured_rows_does_not_stop_the_translation(case, log):
    table = log.table()
    empty = log.gtid(), log.query("BEGIN"), log.query("ROLLBACK TO s"), log.query("ROLLBACK")
    assert shape(await case().translate_leniently([*empty, *transaction(log, table)], [table])) == [
        "begin",
        64,
        "commit",
    ]


@pytest.mark.parametrize(
    ("statement", "reason", "error", "tables"),
    [
        ("INSERT INTO t VALUES (1)", Reason.STATEMENT_FORMAT, StatementFormat, frozenset()),
        ("CREATE TABLE t AS SELECT 1", Reason.CREATE_FROM_QUERY, StatementFormat, SHOP_T),
        (r"CREATE TABLE t (c CHAR(9) DEFAULT '\')", Reason.UNREADABLE_STATEMENT, FatalError, frozenset()),
    ],
)
async def test_statements_that_do_not_log_their_rows_or_cannot_be_read_stop_the_translation(
    case, log, statement, reason, error, tables
):
    table = log.table("u")
    events = log.gtid(), log.query("BEGIN"), log.rows(table), log.query(statement), log.rows(table), log.xid()
    await case().assert_stops(events, [table], error, r"at binlog\.7:34 .*; to start over")
    translated = await case().translate_leniently(events, [table], (reason, 34, tables))
    assert shape(translated) == ["begin", 24, 44, "commit"]


async def test_a_table_that_a_statement_fills_from_a_query_is_read_from_information_schema(make, log):
    translation = make(lenient=True, listed={("shop", "t"): log.known()})
    begin, definition, commit = await translation.of(log.gtid(), log.query("CREATE TABLE t SELECT 1 AS id"))
    assert (definition.table, translation.looked_up) == (log.known(), [("shop", "t")])
    assert isinstance(begin, Begin)
    assert isinstance(commit, Commit)


@pytest.mark.parametrize("oversized", [False, True])
async def test_rows_without_column_names_of_a_table_that_is_not_known_stop_the_translation(case, log, oversized):
    unknown, table = log.nameless(), log.table("u")
    rows = log.oversized if oversized else log.rows
    events = transaction(log, unknown, table, unknown, rows=rows)
    text = (
        r"^rows of shop\.t at binlog\.7:24: the binlog does not name their columns, and the table is not known; "
        r"if .*, grant SELECT on it .*; if it was altered since, set binlog_row_metadata=FULL .*; to start over"
    )
    await case().assert_stops(events, [unknown, table], UnknownTable, text)
    doubts = [(Reason.UNKNOWN_TABLE, offset, SHOP_T) for offset in (24, 44)]
    assert shape(await case().translate_leniently(events, [unknown, table], *doubts)) == ["begin", 34, "commit"]


@pytest.mark.parametrize(
    ("columns", "kind", "why"),
    [
        (2, FieldType.LONG, "the rows have 2 columns, the known table 1"),
        (1, FieldType.LONGLONG, "column id: type is bigint in the rows, int in the known table"),
    ],
)
async def test_rows_without_column_names_that_do_not_fit_the_table_stop_the_translation(case, log, columns, kind, why):
    history = SchemaHistory({("shop", "t"): log.known()})
    other, table = log.nameless(columns=columns, kind=kind), log.table("u")
    events = transaction(log, other, table)
    text = (
        rf"^rows of shop\.t do not fit what is known of the table \({why}.*\) at binlog\.7:24, and the binlog does not "
        r"name their columns; set binlog_row_metadata=FULL .*; to start over"
    )
    await case(history=history).assert_stops(events, [other, table], SchemaMismatch, text)
    doubt = Reason.COLUMN_MISMATCH, 24, SHOP_T
    assert shape(await case(history=history).translate_leniently(events, [other, table], doubt)) == [
        "begin",
        34,
        "commit",
    ]


async def test_rows_without_column_names_that_fit_the_table_get_its_definition(case, log):
    table = log.nameless()
    history = SchemaHistory({("shop", "t"): log.known()})
    translated = await case(history=history).translate_leniently(transaction(log, table), [table])
    assert shape(translated) == ["begin", 24, "commit"]
    assert translated[1].table == log.known()


async def test_without_a_server_a_statement_on_an_unknown_table_is_left_out(case, log):
    """Such a statement's changes of known tables are published."""
    alter = log.query("ALTER TABLE t ADD c INT")
    create, drop = log.query("CREATE TABLE u (id INT)"), log.query("DROP TABLE t, u")
    events = log.gtid(), alter, log.gtid(), create, log.gtid(), drop
    case = case(listed=None)
    doubts = [(Reason.UNDESCRIBED_TABLE, query.start, SHOP_T) for query in (alter, drop)]
    translated = await case.translate_leniently(events, [], *doubts)
    assert shape(translated) == ["begin", create.start, "commit", "begin", drop.start, "commit"]


async def test_real_rows_that_lack_columns_stop_the_translation(make):
    """MySQL 9 wrote them with binlog_row_image=MINIMAL."""
    source = Source(include=["lab.*"])
    with pytest.raises(FatalError, match=r"^rows of lab\.j at m1\.bin:3537 lack columns \("):
        await make(source=source).of_file("mysql-binlog/m1.bin")
    lenient = make(source=source, lenient=True)
    rows = [event for event in await lenient.of_file("mysql-binlog/m1.bin") if isinstance(event, RowsEvent)]
    assert [event.start for event in rows] == [1304, 1843, 2254, 2745, 3059, 3903, 4221, 4809, 5343]
    assert [(doubt.reason, doubt.offset) for doubt in lenient.doubts] == [(Reason.INCOMPLETE_ROW_IMAGE, 3537)]


async def test_real_rows_of_a_table_that_is_not_known_stop_the_translation_or_are_left_out(make):
    source = Source(include=["lab.*"])
    with pytest.raises(SchemaMismatch, match=r"^rows of lab\.st9 at x4\.bin:535: "):
        await make(source=source, flavor="mariadb").of_file("mariadb-binlog/x4.bin")
    lenient = make(source=source, flavor="mariadb", lenient=True)
    assert await lenient.of_file("mariadb-binlog/x4.bin") == []
    assert [doubt.offset for doubt in lenient.doubts] == [535, 767, 997, 1227, 1457]
    assert {doubt.reason for doubt in lenient.doubts} == {Reason.UNKNOWN_TABLE}


async def test_what_precedes_an_error_ends_with_a_complete_transaction(make, log):
    """The publisher would not commit what precedes a part of a transaction."""
    t, translation = log.table(), make()
    first, second = ([log.gtid(), log.query("BEGIN"), log.rows(t), log.xid()] for _ in range(2))
    unreadable = log.query("UPDATE 'quick")
    with pytest.raises(FatalError):
        await translation.of(*first, *second[:3], unreadable, table_maps=[t])
    begin, _, _, commit = translation.translator.rest()
    assert (type(begin), type(commit)) == (Begin, Commit)
