"""The contract of `databus_spark.table`, which each table format keeps."""

from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from common.spark import leaves_sockets
from databus_spark import delta, iceberg
from databus_spark.changelog import COLUMNS
from databus_spark.formats import FORMATS, open_table, other_format
from databus_spark.last_images import merge_latest
from databus_spark.table import LakeTable
from databus_spark.types import literal

pytestmark = [
    pytest.mark.lake,
    leaves_sockets,
]


@pytest.fixture(params=[delta.Table, iceberg.Table], ids=["delta", "iceberg"])
def table(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> LakeTable:
    """A table in a new session that does not exist yet."""
    found: LakeTable = request.param(spark.newSession(), f"file://{tmp_path}/mirror/sh~C3~B6p/a b/items")
    return found


def by_another(table: LakeTable) -> LakeTable:
    """Return the table as another session sees it."""
    return type(table)(table.spark.newSession(), table.path)


def rows(table: LakeTable, query: str) -> DataFrame:
    return table.spark.sql(query)


def content(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, frame.collect()))


def test_each_commit_has_rows_and_text(table: LakeTable) -> None:
    assert not table.exists
    table.empty({"id": "bigint", "name": "string"}, "empty")
    assert (table.exists, table.text(), content(table.read())) == (True, "empty", [])
    table.overwrite(rows(table, "SELECT 1L id, 'one' name"), "first")
    table.overwrite(table.read().selectExpr("upper(name) title", "id"), "second")  # reads what it replaces
    table.note("{noted: 'ü'}")
    table.merge(rows(table, "SELECT 2L id, 'x' title, 'd' a"), ["id"], "s.a = 'd'", "nothing merged", "true", {})

    other = by_another(table)
    assert other.text() == "nothing merged"
    assert content(other.read()) == [("ONE", 1)]
    commits = {text: version for version, text in other.commits()}
    assert list(commits) == ["nothing merged", "{noted: 'ü'}", "second", "first", "empty"]
    assert content(other.read(commits["{noted: 'ü'}"])) == [("ONE", 1)]
    assert content(other.read(commits["first"])) == [(1, "one")]
    assert other.read(commits["empty"]).columns == ["id", "name"]

    table.overwrite(rows(table, "SELECT 1L id"), "")
    assert (table.text(), table.columns()) == ("", {"id": "bigint"})


def test_rows_of_one_identity_are_appended_once(table: LakeTable) -> None:
    batch = rows(table, "SELECT explode(sequence(1, 3)) id")
    table.append(batch, "created", "a")
    table.append(batch, "again", "a")
    assert (table.text(), table.read().count()) == ("created", 3)
    other = by_another(table)
    other.append(rows(other, "SELECT 4 id"), "other", "b")
    table.append(rows(table, "SELECT 5 id"), "late", "b")
    assert (table.text(), content(table.read())) == ("other", [(1,), (2,), (3,), (4,)])
    table.append(rows(table, "SELECT 6 id"), "next", "c")
    table.append(rows(table, "SELECT 7 id"), "early", "a")
    assert (table.text(), content(table.read())[4:]) == ("next", [(6,)])


def test_merge_replaces_older_rows_removes_and_inserts(table: LakeTable) -> None:
    # also columns with names that Iceberg uses, or that are odd
    values = "VALUES (1, 5), (2, 5), (3, 5), (4, 5) v(_file, seq)"
    table.overwrite(rows(table, f"SELECT _file, 'old' `the``name.{{0}}`, seq, 'x' _Pos FROM {values}"), "loaded")
    table.add_columns({"more": "int"}, {}, "interrupted")  # the rows that are merged do not have it yet
    changes = "VALUES (1, 6, 'u'), (2, 6, 'd'), (3, 4, 'u'), (4, 4, 'd'), (5, 6, 'u'), (6, 6, 'd') v(_file, seq, a)"
    source = rows(table, f"SELECT _file, 'new' `the``name.{{0}}`, seq, a, 0 unknown FROM {changes}")
    table = by_another(table)  # the rows are of another session, too
    for text in ("merged", "merged again"):
        table.merge(source, ["_file"], "s.a = 'd'", text, "s.seq >= t.seq", {"_file": ("1L", "6L")})
        assert table.text() == text
        assert content(table.read()) == [
            (1, "new", 6, "x", None), (3, "old", 5, "x", None), (4, "old", 5, "x", None), (5, "new", 6, None, None)
        ]  # fmt: skip
    assert table.read().columns == ["_file", "the`name.{0}", "seq", "_Pos", "more"]


def test_a_merge_finds_any_text_and_keys_of_before_a_column_was_widened(table: LakeTable) -> None:
    texts = ["${spark.app.name}", "it's", "a\\b", "plain"]
    values = ", ".join(f"({literal(text)}, 1.5)" for text in texts)
    old = f"SELECT t, cast(n as decimal(4,2)) n, 'old' value, '1' _seq FROM VALUES {values} v(t, n)"
    table.overwrite(rows(table, old), "loaded")
    table.add_columns({}, {"n": "decimal(12,2)"}, "wider")
    for text in texts:
        key = f"{literal(text)} t, explode(cast(array(1.5, 30000000) as array<decimal(12,2)>)) n"
        merge_latest(
            table, rows(table, f"SELECT {key}, 'new' value, '2' _seq, 'insert' _action"), ["t", "n"], "m", "true"
        )
    assert content(table.read().selectExpr("value", "count(*) over () as rows").distinct()) == [("new", 2 * len(texts))]
    assert content(table.read().select("t").distinct()) == sorted((text,) for text in texts)


def test_persisted_rows_that_are_written_stay_persisted(table: LakeTable) -> None:
    drawn = rows(table, "SELECT rand() _file, 'insert' a").persist()
    [(number, _)] = content(drawn)
    table.overwrite(drawn.drop("a"), "overwritten")
    table.append(drawn.drop("a"), "appended", "a")
    merged = by_another(table)
    merged.merge(drawn, ["_file"], "s.a = 'd'", "merged", "true", {})
    assert content(table.read()) == [(number,)] * 2
    assert content(drawn) == [(number, "insert")]
    drawn.unpersist()


def test_a_merge_reads_only_files_that_may_have_its_keys(table: LakeTable) -> None:
    def row(low: bool, value: str) -> DataFrame:
        number, text, price, day = (
            ("-9223372036854775808L", r"a\'b\\c", "-99.99", "0001-01-01") if low else ("9L", "ü", "0.01", "9999-12-31")
        )
        return rows(
            table,
            f"SELECT {number} n, '{text}' t, cast({price} as decimal(4,2)) p, date'{day}' d, "
            f"timestamp_ntz'{day} 23:59:59.999999' at, binary('b') b, '{value}' value, '2' _seq, 'insert' _action",
        )

    keys = ["n", "t", "p", "d", "at", "b"]
    table.overwrite(row(True, "old").drop("_action"), "low")
    [(other,)] = table.read().select(sql.input_file_name()).collect()
    table.append(row(False, "old").drop("_action"), "high", "a")
    path, away = (Path(f"/{unquote(url).removeprefix('file:').lstrip('/')}") for url in (other, f"{table.path}.away"))
    path.rename(away)
    merge_latest(table, row(False, "new"), keys, "merged", "true")
    away.rename(path)
    merge_latest(table, row(True, "newer"), keys, "merged", "true")
    assert content(table.read().select("value")) == [("new",), ("newer",)]


def test_columns_are_added_and_widened_in_place(table: LakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    table.overwrite(
        rows(table, "SELECT 1 id, cast(1.5 as decimal(8,2)) price, cast(0.5 as float) ratio, 1L long, 1.2 short"),
        "loaded",
    )
    added = {"at.{1}": "timestamp_ntz", "_file": "decimal(20,0)", "data": "binary"}
    wider = {"price": "decimal(12,2)", "ratio": "double"}
    for name, kind in {"long": "decimal(20,0)", "short": "decimal(4,2)"}.items():
        if table.widens(table.columns()[name], kind):
            wider[name] = kind
        else:
            with pytest.raises(PySparkException, match="Cannot change column type"):
                table.add_columns({}, {name: kind}, "wider")
    assert table.text() == "loaded"
    with monkeypatch.context() as patch, suppress(InterruptedError):
        patch.setattr(delta.Table, "note", lambda *_: (_ for _ in ()).throw(InterruptedError))
        table.add_columns(added, wider, "interrupted")
    table.add_columns(added, wider, "added")

    assert table.text() == "added"
    row = {name: f"cast(null as {kind})" for name, kind in table.columns().items()}
    row |= {"id": "2", "price": "cast('1234567890.12' as decimal(12,2))", "ratio": "0.1D", "data": "binary('x')"}
    row |= {"at.{1}": "timestamp_ntz'2024-01-02 03:04:05.000006'", "_file": f"cast({2**64 - 1} as decimal(20,0))"}
    table.append(rows(table, f"SELECT {', '.join(f'{value} `{name}`' for name, value in row.items())}"), "", "a")
    assert table.columns() == {"id": "int", "long": "bigint", "short": "decimal(2,1)", **wider, **added}
    assert content(table.read().drop("long", "short")) == [
        (1, Decimal("1.50"), 0.5, None, None, None),
        (2, Decimal("1234567890.12"), 0.1, datetime(2024, 1, 2, 3, 4, 5, 6), Decimal(2**64 - 1), b"x"),
    ]


def test_a_change_log_is_partitioned_by_any_names(table: LakeTable) -> None:
    table.empty(COLUMNS, "begun", ("_schema", "_table", "_day"), ("_seq", "_time"))
    values = dict.fromkeys(COLUMNS, "null") | {
        "_seq": "'1'", "_schema": "'a/b=%'", "_table": "'ü `x`'", "_file": "'bin.1'", "_partition": "3",
        "_day": "date'2024-01-02'", "cells": "array(binary('x'), null)",
    }  # fmt: skip
    typed = ", ".join(f"cast({values[name]} as {kind}) {name}" for name, kind in COLUMNS.items())
    table.append(rows(table, f"SELECT {typed}"), "appended", "a")

    found = table.read().where("_schema = 'a/b=%' and _table = 'ü `x`' and _partition = 3 and _file = 'bin.1'")
    assert content(found.select("_day", "cells", "_partition")) == [(date(2024, 1, 2), [b"x", None], 3)]
    assert table.columns() == COLUMNS
    assert table.files() == 1
    statistics = {key: value for key, value in table.properties().items() if "dataSkipping" in key or "metrics" in key}
    assert statistics in (
        {"delta.dataSkippingStatsColumns": "`_seq`,`_time`"},
        {
            "write.metadata.metrics.default": "none",
            "write.metadata.metrics.column._seq": "truncate(16)",
            "write.metadata.metrics.column._time": "truncate(16)",
        },
    )
    assert (table.text(), table.read().where("_table = 'x'").count()) == ("appended", 0)


def test_the_format_of_a_lake_is_not_mistaken(table: LakeTable) -> None:
    table.empty({"id": "int"}, "")
    (own,) = (name for name, kind in FORMATS.items() if isinstance(table, kind))
    for name in FORMATS:
        table.spark.conf.set("spark.sql.sources.default", name)
        assert other_format(table.spark, table.path) == (None if name == own else own)
        assert open_table(table.spark, table.path).exists == (name == own)
    assert other_format(table.spark, table.path + "/none") is None


def test_iceberg_publishes_rows_of_one_identity_once_if_two_writers_staged_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = iceberg.Table(spark.newSession(), f"file://{tmp_path}/items")
    other = by_another(table)
    table.empty({"id": "int"}, "begun")
    note, publish = iceberg._note, iceberg.Table._publish

    def staged_after_staged(self: iceberg.Table, mark: str, text: str) -> None:
        monkeypatch.setattr(iceberg.Table, "_publish", publish)
        other.append(rows(other, "SELECT 1 id"), "other", "a")
        publish(self, mark, text)

    monkeypatch.setattr(iceberg.Table, "_publish", staged_after_staged)
    table.append(rows(table, "SELECT 2 id"), "late", "a")
    assert (table.text(), content(table.read())) == ("other", [(1,)])

    def committed_between(transaction: Any, text: str) -> None:
        monkeypatch.setattr(iceberg, "_note", note)
        other.append(rows(other, "SELECT 3 id"), "other again", "b")
        note(transaction, text)

    monkeypatch.setattr(iceberg, "_note", committed_between)
    with suppress(Py4JJavaError):
        table.append(rows(table, "SELECT 4 id"), "too late", "b")
    assert (table.text(), content(table.read())) == ("other again", [(1,), (3,)])


def test_iceberg_keeps_rows_and_text_together_if_another_commit_comes_between(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = iceberg.Table(spark.newSession(), f"file://{tmp_path}/items")
    table.empty({"id": "int"}, "begun")
    publish = iceberg.Table._publish

    def publish_later(self: iceberg.Table, mark: str, text: str) -> None:
        by_another(table).note("compacted")
        publish(self, mark, text)

    monkeypatch.setattr(iceberg.Table, "_publish", publish_later)
    table.append(rows(table, "SELECT 1 id"), "appended", "a")
    table.append(rows(table, "SELECT 2 id"), "again", "a")

    assert [text for _, text in table.commits()] == ["compacted", "appended", "compacted", "begun"]
    assert content(table.read()) == [(1,)]
