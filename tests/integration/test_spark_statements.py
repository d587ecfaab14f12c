"""Mirrors follow statements: columns and tables are changed, renamed, emptied and created again."""

from datetime import datetime
from decimal import Decimal

import pytest
from pyspark.errors import PySparkException

from common.spark import leaves_sockets
from databus_core.events import Action
from databus_core.settings import Publisher
from databus_spark.formats import open_table
from databus_spark.mirror import Mirror
from databus_spark.table_changes import TableChanges
from databus_spark_sink.stream import cuts
from integration.sink import ALTER, INSERT, ITEMS, UPDATE, Sink
from integration.sink_peers import describe_table, on_both_formats

pytestmark = leaves_sockets


@on_both_formats
async def test_columns_added_and_widened_within_a_batch_are_applied(sink: Sink) -> None:
    wider = describe_table("items", "id bigint(20)", "name varchar(20)", "price decimal(8,2)", "seen datetime(6)")
    widest = describe_table("items", "id bigint(20)", "name varchar(20)", "price decimal(12,2)", "seen datetime(6)")
    sink.dump({ITEMS: [[b"1", b"one"]]})
    await sink.publisher.send(
        (ITEMS, INSERT, [[b"2", b"two"]]),
        (wider, ALTER, b"ALTER TABLE items MODIFY id bigint, ADD price decimal(8,2), ADD seen datetime(6)"),
        (wider, INSERT, [[b"3", b"three", b"3.50", b"2024-01-02 03:04:05.000006"]]),
        (widest, ALTER, b"ALTER TABLE items MODIFY price decimal(12,2)"),
        (widest, INSERT, [[b"4", None, b"1234567890.12", None]]),
    )

    await sink.run()

    mirrored = open_table(sink.spark, sink.lake.mirror("shop", "items")).read().orderBy("id").drop("_seq")
    assert [tuple(row) for row in mirrored.collect()] == [
        (1, "one", None, None),
        (2, "two", None, None),
        (3, "three", Decimal("3.50"), datetime(2024, 1, 2, 3, 4, 5, 6)),
        (4, None, Decimal("1234567890.12"), None),
    ]


@pytest.mark.lake
async def test_a_column_that_is_renamed_replaced_or_added_with_a_default_has_the_values_of_the_database(
    sink: Sink,
) -> None:
    after = describe_table("items", "id int(11)", "title varchar(20)", "stock int(11)", "note varchar(9)")
    swapped = describe_table("items", "id int(11)", "note varchar(20)", "stock int(11)", "title varchar(9)")
    emptied = describe_table("items", "id int(11)", "note varchar(20)", "stock int(11)")
    sink.dump({ITEMS: [[b"1", b"one"], [b"2", None]]})
    await sink.publisher.send(
        (after, ALTER, b"ALTER TABLE items CHANGE name title varchar(20), ADD stock int DEFAULT 7, "
                       b"ADD note varchar(9) NOT NULL"),
        (after, UPDATE, [[b"2", None, b"7", b""], [b"2", b"two", b"8", b"!"]]),
        (swapped, ALTER, b"ALTER TABLE items RENAME COLUMN title TO note, RENAME COLUMN note TO title"),
        (emptied, ALTER, b"ALTER TABLE items DROP COLUMN title, DROP COLUMN stock, ADD stock int"),
    )  # fmt: skip

    await sink.run()

    assert sink.mirror(ITEMS) == [{"id": 1, "note": "one", "stock": None}, {"id": 2, "note": "two", "stock": None}]


@on_both_formats
@pytest.mark.lake
async def test_renamed_tables_take_their_rows_along(sink: Sink) -> None:
    a, b, gone = (describe_table(name, "id int(11)", "name varchar(20)") for name in ("a", "b", "gone"))
    renamed = describe_table("renamed", "id int(11)", "name varchar(20)")
    sink.dump({a: [[b"1", b"a"]], b: [[b"2", b"b"]], gone: [[b"3", b"c"]]})
    swap, rename = b"RENAME TABLE a TO t, b TO a, t TO b", b"RENAME TABLE gone TO renamed"
    await sink.publisher.send((a, INSERT, [[b"4", b"a"]]))
    await sink.publisher.statement(swap, (a, ALTER), (b, ALTER))
    await sink.publisher.send((a, INSERT, [[b"5", b"b"]]))
    await sink.publisher.statement(rename, (gone, ALTER), (renamed, ALTER))
    await sink.publisher.send((renamed, INSERT, [[b"6", b"c"]]))
    heap, moved = (describe_table(name, "id int(11)", key=()) for name in ("heap", "moved"))  # they have no mirrors
    await sink.publisher.statement(b"RENAME TABLE heap TO moved", (heap, ALTER), (moved, ALTER))

    await sink.run()

    assert sink.health.degraded == ""

    assert [row["id"] for row in sink.mirror(a)] == [2, 5]
    assert [row["id"] for row in sink.mirror(b)] == [1, 4]
    assert [row["id"] for row in sink.mirror(renamed)] == [3, 6]
    assert sink.mirror(gone) == []


@pytest.mark.lake
async def test_a_mirror_that_could_not_be_written_follows_all_statements_with_the_next_batch(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = describe_table("items", "id int(11)", "name varchar(20)", "n int(11)")
    sink.dump({ITEMS: [[b"1", b"one"]]})
    advance, failures = Mirror.advance, [PySparkException("the disk is full")]

    def advance_later(mirror: Mirror, changes: TableChanges, last: int) -> None:
        if failures and changes.statements:
            raise failures.pop()
        advance(mirror, changes, last)

    monkeypatch.setattr(Mirror, "advance", advance_later)
    monkeypatch.setattr(cuts, "MAX_RECORDS", 1)  # a batch for each
    await sink.publisher.send((ITEMS, Action.TRUNCATE, b"TRUNCATE items"))
    await sink.publisher.send((counted, ALTER, b"ALTER TABLE items ADD n int DEFAULT 5"))
    await sink.publisher.send((counted, INSERT, [[b"2", b"two", b"5"]]))

    await sink.run()

    assert not failures
    assert sink.mirror(ITEMS) == [{"id": 2, "name": "two", "n": 5}]


@pytest.mark.lake
async def test_a_table_that_is_created_filled_and_dropped_within_a_batch_is_in_no_doubt(sink: Sink) -> None:
    columns = "id int(11)", "name varchar(20)"
    scratch, again, keyless = (describe_table(name, *columns) for name in ("scratch", "again", "keyless"))
    without_key = describe_table("keyless", *columns, key=())
    sink.dump({ITEMS: []})
    for table in scratch, again, keyless:
        await sink.publisher.send(
            (table, Action.CREATE, b"CREATE TABLE " + table.name.encode()),
            (table, INSERT, [[b"1", b"gone"]]),
            (table, Action.DROP, b"DROP TABLE " + table.name.encode()),
        )
    await sink.publisher.send(
        (ITEMS, INSERT, [[b"1", b"one"]]),
        (again, Action.CREATE, b"CREATE TABLE IF NOT EXISTS again"),
        (again, INSERT, [[b"2", b"new"]]),
        (without_key, Action.CREATE, b"CREATE TABLE keyless"),
        (without_key, INSERT, [[b"3", b"three"]]),
        (without_key, Action.CREATE, b"CREATE TABLE IF NOT EXISTS keyless"),
    )
    await sink.run()
    assert sink.health.degraded == ""
    assert sink.mirror(again) == [{"id": 2, "name": "new"}]
    mirrors = {table.name: open_table(sink.spark, sink.lake.mirror("shop", table.name)) for table in (scratch, keyless)}
    assert not any(mirror.exists for mirror in mirrors.values())

    # a sink that has started since knows it from the change log
    await sink.publisher.send(
        (scratch, Action.CREATE, b"CREATE TABLE IF NOT EXISTS scratch"),
        (scratch, INSERT, [[b"4", b"four"]]),
        (keyless, ALTER, b"ALTER TABLE keyless ADD PRIMARY KEY (id)"),
        (keyless, Action.CREATE, b"CREATE TABLE IF NOT EXISTS keyless"),
    )
    await sink.run()
    assert sink.mirror(scratch) == [{"id": 4, "name": "four"}]
    assert sink.health.degraded == "parked: shop.keyless", "its rows without a key are not in the lake"


@pytest.mark.lake
async def test_truncated_and_recreated_tables_are_emptied(sink: Sink) -> None:
    born = describe_table("born", "id int(11)", "name varchar(20)")
    sink.dump({ITEMS: [[b"1", b"one"], [b"2", b"two"]]})
    await sink.publisher.send(
        (ITEMS, INSERT, [[b"3", b"three"]]),
        (ITEMS, Action.TRUNCATE, b"TRUNCATE shop.items"),
        (ITEMS, INSERT, [[b"4", b"four"]]),
        (born, Action.CREATE, b"CREATE TABLE shop.born"),
        (born, INSERT, [[b"1", b"old"]]),
        (born, Action.CREATE, b"CREATE TABLE IF NOT EXISTS shop.born"),
    )
    await sink.run()
    assert [row["id"] for row in sink.mirror(ITEMS)] == [4]
    assert sink.mirror(born) == [{"id": 1, "name": "old"}]

    other = describe_table("born", "id int(11)", "name varchar(20)", "more int(11)")
    await sink.publisher.send((other, INSERT, [[b"2", b"odd", b"3"]]))
    await sink.run()
    assert sink.health.degraded == "parked: shop.born"
    await sink.publisher.send((born, Action.DROP, b"DROP TABLE shop.born"))
    await sink.run()
    assert sink.mirror(born) == []
    assert sink.health.degraded == "", "a table that is gone is in no doubt"

    await sink.publisher.send(
        (born, Action.CREATE, b"CREATE TABLE shop.born (name text) COMMENT 'if not exists'"),
        (born, INSERT, [[b"2", b"new"]]),
    )
    await sink.publisher.send((ITEMS, Action.CREATE, b"CREATE OR REPLACE TABLE shop.items"))
    await sink.run()
    assert sink.mirror(born) == [{"id": 2, "name": "new"}]
    assert sink.mirror(ITEMS) == []
    assert [a for (a,) in sink.changes(born, "_action")] == [
        "create",
        "insert",
        "create",
        "insert",
        "drop",
        "create",
        "insert",
    ]


@on_both_formats
@pytest.mark.lake
async def test_values_that_a_statement_may_have_changed_park_the_table(sink: Sink) -> None:
    columns = "id int(11)", "word varchar(9)"
    latin, other, numbered = (describe_table(name, *columns) for name in ("latin", "other", "numbered"))
    sink.dump({latin: [[b"1", b"plain"], [b"2", None]], other: [[b"1", "ж".encode()]], numbered: [[b"0", b"zero"]]})
    to_latin1 = b" CONVERT TO CHARACTER SET latin1"  # ? replaces ж, unless the session's sql_mode is strict
    await sink.publisher.send(
        (latin, ALTER, b"ALTER TABLE latin" + to_latin1),
        (latin, INSERT, [[b"3", "é".encode()]]),
        (latin, ALTER, b"ALTER TABLE latin CONVERT TO CHARACTER SET utf8mb4"),
        (other, ALTER, b"ALTER TABLE other" + to_latin1),
        (numbered, ALTER, b"ALTER TABLE numbered MODIFY id int AUTO_INCREMENT"),  # 0 becomes 1
    )

    await sink.run()

    assert [row["word"] for row in sink.mirror(latin)] == ["plain", None, "é"]
    assert sink.health.degraded == "parked: shop.numbered, shop.other"
    parked = sink.read(sink.lake.tables, "SELECT reason FROM t WHERE \"table\" = 'other' AND state = 'parked'")
    assert parked == [{"reason": "a statement may have changed values of word"}]


@pytest.mark.lake
async def test_a_statement_on_columns_that_a_rule_renames_lets_the_table_be_loaded_again(sink: Sink) -> None:
    rule = {"match": ["shop.items"], "rename": {"email": "mail"}}
    sink.settings = sink.settings.model_copy(update={"publisher": Publisher(routes=[rule])})
    sink.use(heal="auto")
    published = describe_table("items", "id int(11)", "mail varchar(20)")
    sink.dump({published: [[b"1", b"old"]]})
    await sink.publisher.send(
        (published, INSERT, [[b"2", b"new"]]),
        (published, ALTER, b"ALTER TABLE items ADD INDEX (email), COMMENT 'mail'"),
    )
    await sink.run()
    assert sink.mirror(published) == [{"id": 1, "mail": "old"}, {"id": 2, "mail": "new"}]
    assert [row["state"] for row in sink.read(sink.lake.tables)] == ["live"]

    alter = b"ALTER TABLE items DROP COLUMN email, ADD COLUMN email varchar(20) DEFAULT 'x'"
    await sink.publisher.send((published, ALTER, alter))
    sink.dumps.on_request = [sink.dumps.manifest(sink.publisher.position, {published: [[b"1", b"x"], [b"2", b"x"]]})]
    sink.dumps.requested = ["shop.items"]
    await sink.run()

    assert sink.mirror(published) == [{"id": 1, "mail": "x"}, {"id": 2, "mail": "x"}]
