"""A table's definition comes from the binlog, the schema history or information_schema."""

import logging

import msgspec
import pytest

from databus_changes.ddl.dialect import Dialect
from databus_changes.ddl.statement import parse_statement
from databus_changes.tracker import TableTracker
from databus_core.events import Index, SchemaDefinition, Table
from databus_core.kafka_history import SchemaHistory


@pytest.fixture
def track(make):
    """Make a tracker; return it, a function that applies statements to it, and the list of tables that it looks up."""

    def run(**options):
        translation = make(**options)
        tracker = translation.tracker

        async def apply(text, *tables, as_written=True):
            return await tracker.apply(parse_statement(text, "shop"), tables, as_written=as_written)

        return tracker, apply, translation.looked_up

    return run


async def test_information_schema_is_read_once_to_complete_a_table_that_the_binlog_describes(track, log):
    listed = msgspec.structs.replace(log.known(), indexes=(Index("PRIMARY", ("id",)), Index("k", ("id",))))
    tracker, _, looked_up = track(listed={("shop", "t"): listed})
    table_map = log.table()
    assert tracker.describe(table_map) == table_map
    assert tracker.table_by_fingerprint(table_map.fingerprint) is None
    assert await tracker.learn(table_map) == listed
    assert tracker.table_by_fingerprint(table_map.fingerprint) == listed
    assert await tracker.learn(table_map) == listed
    assert looked_up == [("shop", "t")]


async def test_the_binlogs_description_is_used_if_information_schema_is_ahead_of_it(track, log):
    tracker, _, _ = track(listed={("shop", "t"): log.known(columns="id later")})
    table_map = log.table()
    tracker.describe(table_map)
    table = await tracker.learn(table_map)
    assert [column.raw_type for column in table.columns] == ["int"]
    assert tracker.existing(("shop", "t")) == table


async def test_the_binlogs_description_is_used_if_the_history_differs(track, log):
    history = SchemaHistory({("shop", "t"): log.known(columns="old")})
    tracker, _, looked_up = track(history=history)
    table_map = log.table(columns="new")
    tracker.describe(table_map)
    assert [column.name for column in (await tracker.learn(table_map)).columns] == ["new"]
    assert looked_up == [("shop", "t")]


async def test_the_history_completes_a_table_that_the_binlog_describes(track, log):
    tracker, _, looked_up = track(history=SchemaHistory({("shop", "t"): log.known()}))
    table_map = log.table()
    tracker.describe(table_map)
    assert await tracker.learn(table_map) == log.known()
    assert looked_up == []


def without_primary_key(table: Table) -> Table:
    """Return the table with a unique index of its first column instead of the primary key."""
    index = Index("u", (table.columns[0].name,), unique=True)
    return msgspec.structs.replace(table, primary_key=(), indexes=(index,))


async def test_a_unique_key_that_the_binlog_names_does_not_become_a_primary_key(track, log):
    """A table map names the key that the server uses; the schema history or information_schema shows its kind."""
    unique = without_primary_key(log.known())
    for options in ({"history": SchemaHistory({("shop", "t"): unique})}, {"listed": {("shop", "t"): unique}}):
        tracker, _, _ = track(**options)
        tracker.describe(log.table())
        table = await tracker.learn(log.table())
        assert (table, table.row_key) == (unique, (0,))


async def test_a_key_is_assumed_to_be_the_primary_key_until_information_schema_fits(track, log, caplog):
    """As if the reader starts before statements that have altered the table since."""
    listed = without_primary_key(log.known(columns="id later"))
    tracker, apply, _ = track(listed={("shop", "t"): listed})
    tracker.describe(log.table())
    with caplog.at_level(logging.WARNING, "databus.changes"):
        assert (await tracker.learn(log.table())).primary_key == (0,)
    assert [record.getMessage() for record in caplog.records] == [
        "the key (id) of shop.t is used as its primary key, but may be a unique key: the binlog does not show this, "
        "and information_schema does not list the table as it was in these rows"
    ]
    [altered] = await apply("ALTER TABLE t ADD later INT NOT NULL", ("shop", "t"))
    assert (altered.primary_key, altered.key_assumed) == ((0,), True)
    later = log.table(columns="id later")
    tracker.describe(later)
    assert await tracker.learn(later) == listed


async def test_a_statement_that_drops_a_primary_key_shows_that_there_was_one(track, log):
    tracker, apply, _ = track(listed=None)
    tracker.describe(log.table())
    assert (await tracker.learn(log.table())).key_assumed
    [altered] = await apply("ALTER TABLE t DROP PRIMARY KEY, ADD x INT, ADD PRIMARY KEY (id, x)", ("shop", "t"))
    assert (altered.primary_key, altered.key_assumed) == ((0, 1), False)


async def test_a_key_with_a_prefix_is_the_primary_key(track, log):
    tracker, _, _ = track()
    table_map = msgspec.structs.replace(log.table(), key_has_prefix=True)
    tracker.describe(table_map)
    table = await tracker.learn(table_map)
    assert (table.primary_key, table.key_assumed) == ((0,), False)


async def test_the_key_of_a_system_versioned_table_is_of_the_kind_that_information_schema_lists(track, log):
    """MariaDB adds implicit period columns that are not listed, and one of them to the key."""
    table_map = msgspec.structs.replace(log.table(columns="id row_start row_end"), key=(0, 2))
    for listed, primary_key in ((log.known(), (0, 2)), (without_primary_key(log.known()), ())):
        tracker, _, _ = track(listed={("shop", "t"): listed})
        tracker.describe(table_map)
        table = await tracker.learn(table_map)
        assert (table.primary_key, table.row_key, table.key_assumed) == (primary_key, (0, 2), False)


async def test_columns_keep_their_names_if_the_binlog_no_longer_names_them(track, log):
    """As after binlog_row_metadata was changed from FULL to NO_LOG."""
    tracker, _, _ = track()
    tracker.describe(log.table())
    complete = tracker.describe(log.nameless())
    assert (complete.has_names, complete.columns[0].name) == (True, "id")
    assert tracker.mismatch(complete) is None


async def test_a_table_map_that_does_not_fit_has_no_names_but_its_rows_can_be_decoded(track, log):
    tracker, _, _ = track(history=SchemaHistory({("shop", "t"): log.known(columns="a b")}))
    for name, mismatch in (("t", "the rows have 1 columns, the known table 2"), ("u", None)):
        described = tracker.describe(log.nameless(name))
        assert (described.has_names, described.columns[0].unsigned) == (False, False)
        assert tracker.mismatch(described) == mismatch
    tracker.describe(log.nameless(columns=2))
    assert tracker.mismatch(log.nameless(columns=2)) is None


async def test_a_statement_invalidates_the_table_maps_of_its_tables_only(track, log):
    tracker, apply, _ = track()
    table_map = log.table()
    tracker.describe(table_map)
    await tracker.learn(table_map)
    await apply("ALTER TABLE u ADD c INT", ("shop", "u"))
    assert tracker.table_by_fingerprint(table_map.fingerprint)
    await apply("ALTER TABLE t ADD c INT", ("shop", "t"))
    assert tracker.table_by_fingerprint(table_map.fingerprint) is None


async def test_statements_are_applied_by_their_text(track, log):
    tracker, apply, looked_up = track()
    [schema] = await apply("CREATE DATABASE shop CHARSET latin1")
    assert schema == SchemaDefinition("shop", "latin1")
    [created] = await apply("CREATE TABLE t (c CHAR(3))", ("shop", "t"))
    assert created.columns[0].charset == "latin1"
    assert await apply("CREATE TABLE other.t (id INT)", ("other", "t")) == []
    assert tracker.existing(("other", "t")) is None
    [dropped] = await apply("DROP TABLE t", ("shop", "t"))
    assert dropped == Table(schema="shop", name="t", columns=())
    assert (tracker.existing(("shop", "t")), tracker.last_known(("shop", "t"))) == (None, created)
    assert await apply("DROP DATABASE shop") == [SchemaDefinition("shop", None)]
    [created] = await apply("CREATE TABLE t (c INT)", ("shop", "t"))
    assert tracker.last_known(("shop", "t")) == created
    assert await apply("CREATE DATABASE other CHARSET latin1") == []
    assert looked_up == []


async def test_the_charset_of_a_dropped_schema_is_forgotten(track, log):
    _, apply, looked_up = track(history=SchemaHistory(charsets={"shop": "latin1"}))
    await apply("DROP DATABASE shop")
    await apply("CREATE TABLE t (c CHAR(3))", ("shop", "t"))
    assert looked_up == [("shop", "t")]


@pytest.mark.parametrize(
    ("text", "as_written", "known", "reason"),
    [
        ("ALTER TABLE t FROBNICATE", True, True, "FROBNICATE (token 4) is not understood"),
        ("ALTER TABLE t ADD c INT", False, True, "it failed half way, or some of its tables are temporary"),
        ("ALTER TABLE t ADD c INT", True, False, None),
        ("TRUNCATE TABLE t", True, False, None),
    ],
)
async def test_a_table_whose_definition_is_not_clear_after_a_statement_is_read_from_information_schema(
    track, log, caplog, text, as_written, known, reason
):
    listed = log.known(columns="id c")
    history = SchemaHistory({("shop", "t"): log.known()} if known else {})
    tracker, apply, looked_up = track(history=history, listed={("shop", "t"): listed})
    with caplog.at_level(logging.WARNING, "databus.changes"):
        assert await apply(text, ("shop", "t"), ("shop", "t"), ("other", "x"), as_written=as_written) == [listed]
    assert looked_up == [("shop", "t")]
    assert tracker.existing(("shop", "t")) == listed
    assert [record.getMessage() for record in caplog.records] == (
        [f"reading shop.t from information_schema, because a statement on it cannot be applied: {reason}"]
        if reason
        else []
    )


async def test_declared_types_are_kept_when_a_table_is_read_from_information_schema(track, log):
    listed = log.known(columns="id b", raw_type="tinyint(1)")
    tracker, apply, _ = track(history=SchemaHistory(charsets={"shop": "latin1"}), listed={("shop", "t"): listed})
    await apply("CREATE TABLE t (id TINYINT(1), b BOOL, c BOOLEAN)", ("shop", "t"))
    await apply("ALTER TABLE t FROBNICATE", ("shop", "t"))
    assert [(c.name, c.declared) for c in tracker.existing(("shop", "t")).columns] == [("id", ""), ("b", "BOOL")]


async def test_without_a_server_a_table_whose_definition_is_not_clear_after_a_statement_is_not_known(track, log):
    tracker, apply, _ = track(history=SchemaHistory({("shop", "t"): log.known()}), listed=None)
    await apply("DROP TABLE t", ("shop", "t"))
    await apply("CREATE TABLE t (id INT)", ("shop", "t"))
    assert await apply("ALTER TABLE t FROBNICATE", ("shop", "t")) == []
    assert (tracker.existing(("shop", "t")), tracker.last_known(("shop", "t"))) == (None, None)
    table_map = log.table()
    tracker.describe(table_map)
    assert [column.name for column in (await tracker.learn(table_map)).columns] == ["id"]


async def test_table_names_are_not_case_sensitive_on_a_server_that_folds_them(log):
    async def look_up(_schema, _name):
        return None

    dialect = Dialect(flavor="mysql", integer_widths=True, folds_names=True)
    history = SchemaHistory({("shop", "t"): log.known()})
    tracker = TableTracker(history, dialect, lookup=look_up, tracks=lambda _: True)
    assert tracker.existing(("SHOP", "T")) == log.known()
    await tracker.apply(parse_statement("DROP TABLE T", "Shop"), [("Shop", "T")], as_written=True)
    assert tracker.last_known(("Shop", "T")) == log.known()
    assert tracker.last_known(("Shop", "U")) == Table(schema="Shop", name="U", columns=())
