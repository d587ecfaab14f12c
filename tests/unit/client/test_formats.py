"""How the client reads records in formats other than `databus`: the rare ones."""

import hashlib
import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from aiokafka import ConsumerRecord

from databus.bookmark import Bookmark, Join
from databus.formats.debezium_types import Field, from_connect
from databus.formats.others import FORMATS, OtherFormats
from databus.merge import Record
from databus.published import Published
from databus.records import RecordReader
from databus.source import Source
from databus_binlog import Position
from databus_core.change_topics import ChangeTopics
from databus_core.errors import InvalidSettings, SchemaMismatch
from databus_core.settings import Settings

SEQUENCE = "0000000000000001-0000000000"
MAXWELL: dict[str, Any] = {"database": "shop", "table": "t", "type": "insert", "ts": 1, "data": {"id": 1}}
CANAL = {"database": "shop", "table": "t", "isDdl": False, "sql": "", "type": "INSERT", "pkNames": ["id"]}


def settings(*rules: dict[str, Any]) -> Settings:
    return Settings(name="p", publisher={"routes": [{"match": ["*.*"]} | rule for rule in rules]})


def record(value: bytes | dict[str, Any], topic: str = "p.shop.t") -> Record:
    encoded = value if isinstance(value, bytes) else json.dumps(value, separators=(",", ":")).encode()
    return ConsumerRecord(topic, 0, 5, 0, 0, None, encoded, None, 0, 0, ())


def reader(join: Join | None = None, **rule: Any) -> RecordReader:
    known = settings({"format": "maxwell-json"} | rule)
    source = Source(known, None, ["shop.*"], ChangeTopics(known, ["shop.*"], FORMATS))  # type: ignore[arg-type]
    return RecordReader(source, Bookmark(pipeline="p", tables=["*.*"], offsets={}, join=join))


def options(**given: Any) -> OtherFormats:
    return OtherFormats(lambda *_: given)


@pytest.mark.parametrize(
    "value",
    [
        {"status": "BEGIN", "id": "1", "event_count": None, "data_collections": None, "ts_ms": 1},
        {"source": {"db": "shop", "table": "t", "file": "b.1", "pos": 4}, "ts_ms": 1, "databaseName": "shop"},
        {"ts_ms": 1},
        {"schema": {"type": "struct", "fields": []}, "payload": {"ts_ms": 1}},
        {"type": "database-create", "database": "shop", "sql": "CREATE DATABASE shop"},
        MAXWELL | {"type": "bootstrap-start", "data": {}},
        MAXWELL | {"type": "bootstrap-complete", "data": {}},
        {"data": None} | CANAL | {"table": "", "isDdl": True, "type": "QUERY", "sql": "CREATE DATABASE shop"},
    ],
)
async def test_records_that_are_not_about_a_table_are_skipped(value: dict[str, Any]) -> None:
    assert await reader().blocks(SEQUENCE, record(value)) == []


async def test_records_of_other_tables_and_of_other_outputs_are_skipped() -> None:
    assert await reader().blocks(SEQUENCE, record(MAXWELL)) != []
    assert await reader().blocks(SEQUENCE, record(MAXWELL | {"database": "crm"}, "p.crm.t")) == []
    assert await reader().blocks(SEQUENCE, record(MAXWELL, "p.shop.t.copy")) == []


async def test_a_record_in_no_known_format_is_an_error() -> None:
    with pytest.raises(SchemaMismatch, match="offset 5: a record is in none of the formats that"):
        await reader().blocks(SEQUENCE, record({"logtype": "mysqlbinlog"}))
    with pytest.raises(SchemaMismatch, match="is not a message of format maxwell-json"):
        await reader().blocks(SEQUENCE, record(b'{"database":'))


async def test_a_value_that_was_too_large_is_fetched(tmp_path: Path) -> None:
    stored = record(MAXWELL).value
    (tmp_path / "value").write_bytes(stored)
    check = {"url": (tmp_path / "value").as_uri(), "bytes": 9, "sha256": hashlib.sha256(stored).hexdigest()}
    claim = {"schema": "shop", "table": "t", "action": "insert", "claim_check": check}
    [block] = await reader().blocks(SEQUENCE, record(claim))
    assert block
    assert [block.rows.values(image) for image in block.images] == [{"id": 1}]
    assert await reader().blocks(SEQUENCE, record(claim, "p.crm.t")) == []


async def test_the_event_at_the_position_of_a_snapshot_is_after_it() -> None:
    """Records have the start of their event: a snapshot at 100 has what starts before."""
    join = Join(Position("", "b.000002", 100), int(SEQUENCE[:16]))

    async def is_delivered(position: str) -> bool:
        return await reader(join).blocks(SEQUENCE, record(MAXWELL | {"position": position})) != []

    assert [await is_delivered(each) for each in ("b.000001:200", "b.000002:99")] == [False, False]
    assert [await is_delivered(each) for each in ("b.000002:100", "b.000003:4")] == [True, True]
    with pytest.raises(InvalidSettings, match=r"a record of transaction \d+ has no position"):
        await reader(join).blocks(SEQUENCE, record(MAXWELL | {"type": "bootstrap-insert"}))
    behind = Join(join.position, int(SEQUENCE[:16]) - 1)
    assert await reader(behind).blocks(SEQUENCE, record(MAXWELL)) != []


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ([{"format": "canal-json"}], "rule 1: records of format canal-json have no positions, so"),
        ([{"format": "maxwell-json"}], r"no positions \(set its option output_binlog_position\), so"),
        ([{"match": ["shop.old*"], "format": "canal-json"}, {}], r"rule 1: .* read shop.old\* with start='latest'"),
    ],
)
def test_what_a_snapshot_needs(rules: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(InvalidSettings, match=message):
        Published(settings(*rules)).require_positions(["shop.*"])


def test_a_snapshot_needs_positions_only_of_tables_that_are_read() -> None:
    canal, maxwell = {"match": ["crm.*"], "format": "canal-json"}, {"format": "maxwell-json"}
    with_positions = maxwell | {"options": {"output_binlog_position": True}}
    Published(settings(canal, with_positions)).require_positions(["shop.*"])
    Published(settings(canal | {"output": "other", "topic": "all"}, {"format": "debezium-json"})).require_positions(
        ["*.*"]
    )


def test_debezium_s_values_that_the_binlog_lacks_are_left_out() -> None:
    after = {"id": 1, "t": "__debezium_unavailable_value", "b": "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==", "v": "x"}
    value = {"before": None, "after": after, "source": {"db": "shop", "table": "t"}, "op": "c"}
    event = options().event(b'{"id":1}', record(value).value)
    assert event
    assert event.rows.values(event.images[0]) == {"id": 1, "v": "x"}
    event = options(unavailable_value_placeholder="x").event(b'{"id":1}', record(value).value)
    assert event
    assert list(event.rows.values(event.images[0])) == ["id", "t", "b"]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("io.debezium.time.Date", -719528 + 60, "0000-03-01"),
        ("io.debezium.time.Date", -719162, date(1, 1, 1)),
        ("io.debezium.time.MicroTimestamp", -62167219200 * 10**6 + 1, "0000-01-01 00:00:00.000001"),
        ("io.debezium.time.NanoTimestamp", 1_000_001_000, datetime(1970, 1, 1, 0, 0, 1, 1)),
        ("io.debezium.time.IsoDate", "0000-03-01Z", "0000-03-01Z"),
    ],
)
def test_dates_that_python_lacks_stay_text(name: str, value: Any, expected: Any) -> None:
    convert = from_connect(Field(type="int32", name=name))
    assert convert
    assert convert(value) == expected


def test_a_local_time_that_is_two_moments_stays_text() -> None:
    texts = ["2026-10-25 01:30:00", "2026-10-25 02:30:00", "2026-10-25 03:30:00", "0000-00-00 00:00:00"]
    types = {"id": "int", "at": "timestamp"}
    data = [{"id": "1", "at": text} for text in texts]
    value = {"data": data} | CANAL | {"mysqlType": types, "old": None}
    event = options(time_zone="Europe/Berlin").event(None, record(value).value)
    assert event
    assert [event.rows.values(image)["at"] for image in event.images] == [
        datetime(2026, 10, 24, 23, 30, tzinfo=UTC), texts[1], datetime(2026, 10, 25, 2, 30, tzinfo=UTC), texts[3]
    ]  # fmt: skip
    with pytest.raises(LookupError, match="canal-json with a time zone"):
        event.rows.texts(event.images[0])


def test_columns_that_maxwell_leaves_out() -> None:
    """With `output_nulls: false` a column that is NULL is missing."""
    key = b'{"database":"shop","table":"t","pk.id":1}'
    update = MAXWELL | {"type": "update", "data": {"ID": 1, "v": 1.50}, "old": {"w": {"a": 0.5}}}
    event = options().event(key, record(update).value)
    assert event
    before, after = (event.rows.values(image) for image in event.images)
    assert (before, after) == ({"ID": 1, "v": 1.5, "w": {"a": 0.5}}, {"ID": 1, "v": 1.5})
    assert event.rows.table.primary_key == (0,)
