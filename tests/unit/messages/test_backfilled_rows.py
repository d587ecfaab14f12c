"""Rows that a backfill loads, and the TRUNCATE before them, become messages like changes: routed, filtered, spread."""

import json
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from databus_core.errors import GenerationLost
from databus_core.events import (
    Action,
    Begin,
    Column,
    Commit,
    Event,
    RowsEvent,
    SnapshotEvent,
    SnapshotTruncate,
    Table,
    TableDefinition,
)
from databus_core.settings import Publisher
from databus_messages.encoder import EventEncoder
from databus_messages.formats.base import Change, DdlStatement, MessageSource, Record
from databus_messages.message import Message
from databus_messages.outputs import plan_outputs

COLUMNS = (Column(name="id", type="int", raw_type="int"), Column(name="v", type="int", raw_type="int", nullable=True))
TABLE = Table(schema="shop", name="it`ems", columns=COLUMNS, primary_key=(0,))
BEGIN = Begin(7, "", "binlog.3", 0, 0, 5_000_000, 480, 480)
COMMIT = Commit("", "binlog.3", 480, None, 480)
READ_US = 1_700_000_000_000_000
ENDS = {"first_of_table": True, "last_of_table": True}
FORMATS = ["databus", "canal-json", "canal-protobuf", "debezium-json", "maxwell-json", "tdsql", "dip"]


class Pipe:
    """An encoder whose topics all have the same number of partitions."""

    def __init__(self, *routes: dict[str, Any], partitions: int = 1) -> None:
        publisher = Publisher.model_validate({"routes": [{"match": ["*.*"]} | route for route in routes]})
        source = MessageSource("shop", "mariadb", "127.0.0.1", 3306)
        self._counts: dict[str, int] = {}
        self._partitions = partitions
        self.encoder = EventEncoder(publisher.rules, plan_outputs(publisher.rules), source, self._counts, b"salt")
        self.messages(TableDefinition(TABLE))

    def messages(self, *events: Event) -> list[Message]:
        """Return the messages of the events, which may be in the middle of a transaction."""
        found: list[Message] = []
        for event in events:
            if isinstance(event, SnapshotEvent | SnapshotTruncate | RowsEvent):
                self._counts.update(dict.fromkeys(self.encoder.unknown_topics(event), self._partitions))
            found += self.encoder.messages(event)
        return found

    def records(self, *events: Event) -> list[Record]:
        """Return the records of a transaction with these events."""
        return [record for message in self.messages(BEGIN, *events, COMMIT) for record in message.encode()]


def rows(*numbers: int, row: int = 0, **fields: Any) -> SnapshotEvent:
    packed = msgspec.Raw(msgspec.msgpack.encode([[b"%d" % number, None] for number in numbers]))
    return SnapshotEvent(TABLE.fingerprint, row, packed, READ_US, **fields)


def changes(messages: list[Message]) -> list[Change]:
    contents = [message.content for message in messages]
    assert all(isinstance(content, Change) for content in contents)
    return [content for content in contents if isinstance(content, Change)]


def marks(change: Change) -> set[str]:
    assert change.snapshot
    return {name for name, value in change.snapshot._asdict().items() if value is True}


def ids(change: Change) -> list[bytes | None]:
    return [row[0] for row in change.rows]


def values(records: list[Record]) -> list[Any]:
    return [json.loads(record.value or b"") for record in records]


def test_debezium_marks_the_rows_of_the_first_snapshot_and_all_others_as_incremental() -> None:
    def markers(*events: SnapshotEvent) -> list[str]:
        records = Pipe({"format": "debezium-json", "options": {"schemas_enable": False}}).records(*events)
        return [value["source"]["snapshot"] for value in values(records)]

    whole = rows(1, 2, 3, initial=True, first=True, last=True, **ENDS)
    assert markers(whole) == ["first", "true", "last"]
    part = replace(whole, first=False, last=False)
    assert markers(part) == ["first_in_data_collection", "true", "last_in_data_collection"]
    assert markers(replace(part, last_of_table=False), rows(4, row=3, initial=True)) == [
        "first_in_data_collection", "true", "true", "true",
    ]  # fmt: skip
    assert markers(rows(1, 2, 3, **ENDS)) == ["incremental"] * 3


def test_a_debezium_row_is_a_read_at_the_boundary_where_the_stream_has_it() -> None:
    (record,) = Pipe({"format": "debezium-json", "options": {"schemas_enable": False}}).records(rows(1))
    (value,) = values([record])
    assert (record.key, value["op"], value["after"]) == (b'{"id":1}', "r", {"id": 1, "v": None})
    source = value["source"]
    assert [source[name] for name in ("ts_ms", "file", "pos", "row", "server_id", "gtid", "thread")] == [
        READ_US // 1000, "binlog.3", 480, 0, 0, None, None,
    ]  # fmt: skip


def test_maxwell_brackets_the_rows_of_a_table_once_and_identifies_them_by_their_transaction() -> None:
    pipe = Pipe({"format": "maxwell-json"})
    records = pipe.records(rows(1, 2, first_of_table=True), rows(3, row=2, last_of_table=True))
    assert [value["type"] for value in values(records)] == [
        "bootstrap-start", "bootstrap-insert", "bootstrap-insert", "bootstrap-insert", "bootstrap-complete",
    ]  # fmt: skip
    assert {value["ts"] for value in values(records)} == {READ_US // 1_000_000}
    assert [value["type"] for value in values(pipe.records(rows(**ENDS)))] == ["bootstrap-start", "bootstrap-complete"]
    assert values(pipe.records(rows(1))) == [
        {"database": "shop", "table": "it`ems", "type": "bootstrap-insert", "ts": 1_700_000_000,
         "data": {"id": 1, "v": None}}
    ]  # fmt: skip


def test_keys_of_maxwell_rows_without_a_primary_key_differ_and_are_the_same_if_they_are_sent_again() -> None:
    table = replace(TABLE, primary_key=())
    first, second = (replace(rows(*range(20), row=row), table=table.fingerprint) for row in (0, 20))

    def keys(*events: SnapshotEvent) -> list[bytes | None]:
        pipe = Pipe({"format": "maxwell-json", "key": ["id"]}, partitions=2)
        pipe.messages(TableDefinition(table))
        return [record.key for record in pipe.records(*events)]

    assert len({*keys(first, second)}) == 40
    assert keys(first, second) == keys(first) + keys(second)


@pytest.mark.parametrize("format_name", ["databus", "canal-json"])
def test_records_have_the_kind_of_backfill_in_a_header(format_name: str) -> None:
    pipe = Pipe({"format": format_name})
    (initial,), (incremental,) = pipe.records(rows(1, 2, initial=True, **ENDS)), pipe.records(rows(1, 2))
    assert ("databus.snapshot", b"initial") in initial.headers
    assert ("databus.snapshot", b"incremental") in incremental.headers


def test_a_databus_record_has_the_boundary_in_its_key() -> None:
    (initial,) = Pipe({"format": "databus"}).records(rows(1, 2, initial=True, **ENDS))
    assert initial.key == b'{"Pos":{"Name":"binlog.3","Pos":480},"Action":"DML"}'
    assert (values([initial])[0]["Action"], len(values([initial])[0]["Rows"])) == ("insert", 2)


def test_canal_writes_inserts_with_the_ordinal_of_the_transaction() -> None:
    (record,) = Pipe({"format": "canal-json"}).records(rows(1, 2))
    (value,) = values([record])
    assert (value["type"], value["id"], value["es"], value["gtid"]) == ("INSERT", 7, READ_US // 1000, "")
    assert value["data"] == [{"id": "1", "v": None}, {"id": "2", "v": None}]


@pytest.mark.parametrize("format_name", ["tdsql", "dip"])
def test_other_formats_write_inserts_at_the_boundary(format_name: str) -> None:
    (record,) = Pipe({"format": format_name}).records(rows(1))
    (value,) = values([record])
    expected = {"BINLOG_POS": 480, "TYPE": "I"} if format_name == "dip" else {"eventtypestr": "insert", "gtid": ""}
    assert expected.items() <= value.items()


@pytest.mark.parametrize("format_name", FORMATS)
def test_rows_of_a_backfill_have_no_transaction_frames_and_are_not_buffered(format_name: str) -> None:
    options = {"provide_transaction_metadata": True} if format_name == "debezium-json" else {}
    pipe = Pipe({"format": format_name, "options": options})
    assert len(changes(pipe.messages(BEGIN, rows(1, 2)))) == 1
    assert pipe.messages(COMMIT) == []
    assert pipe.encoder.buffered_rows == 0


@pytest.mark.parametrize("format_name", FORMATS)
def test_only_maxwell_writes_anything_for_a_table_without_rows(format_name: str) -> None:
    records = Pipe({"format": format_name}).records(rows(**ENDS, initial=True, first=True, last=True))
    assert len(records) == (2 if format_name == "maxwell-json" else 0)
    assert Pipe({"format": format_name}).messages(BEGIN, rows()) == []


def test_filters_projections_and_partitions_apply() -> None:
    route = {"where": [{"column": "id", "in": ["2", "3", "5"]}], "columns": {"include": ["id"]}}
    pipe = Pipe(route | {"partition_by": "primary_key"}, partitions=2)
    messages = pipe.messages(BEGIN, rows(1, 2, 3, 4, 5, row=10, **ENDS))
    assert sorted(id_ for change in changes(messages) for id_ in ids(change)) == [b"2", b"3", b"5"]
    assert {message.partitions[0].number for message in messages} == {0, 1}
    assert all(len(row) == 1 for change in changes(messages) for row in change.rows)
    ordinals = {pair for change in changes(messages) for pair in zip(ids(change), change.ordinals, strict=True)}
    assert ordinals == {(b"2", 11), (b"3", 12), (b"5", 14)}


def test_each_mark_is_on_one_message_also_if_partitions_split_the_rows() -> None:
    pipe = Pipe({"partition_by": "primary_key"}, partitions=3)
    found = changes(pipe.messages(BEGIN, rows(*range(20), initial=True, first=True, last=True, **ENDS)))
    assert len(found) == 3
    assert [marks(change) for change in found] == [
        {"initial", "first", "first_of_table"}, {"initial"}, {"initial", "last", "last_of_table"},
    ]  # fmt: skip


def test_marks_outlive_rows_that_are_all_filtered_out() -> None:
    for partition_by in "table", "primary_key":
        route = {"where": [{"column": "id", "equals": 9}], "partition_by": partition_by}
        pipe = Pipe(route, partitions=2)
        ((change),) = changes(pipe.messages(BEGIN, rows(1, 2, first_of_table=True)))
        assert (ids(change), marks(change)) == ([], {"first_of_table"})
        assert pipe.messages(rows(1, 2)) == []


def test_halves_share_the_marks() -> None:
    (message,) = Pipe({}).messages(BEGIN, rows(1, 2, 3, **ENDS))
    first, second = changes(list(message.halves() or ()))
    assert (ids(first), marks(first)) == ([b"1"], {"first_of_table"})
    assert (ids(second), marks(second)) == ([b"2", b"3"], {"last_of_table"})


def test_only_the_wanted_output_gets_rows_and_truncation() -> None:
    pipe = Pipe({"output": "a", "topic": "a"}, {"output": "b", "topic": "b"})
    for output, topics in {"": ["a", "b"], "b": ["b"]}.items():
        events = [SnapshotTruncate(TABLE.fingerprint, output), rows(1, output=output)]
        for event in events:
            found = pipe.messages(BEGIN, event)
            assert [message.partitions[0].topic for message in found] == topics


def test_a_truncation_goes_to_all_partitions_like_one_of_the_source() -> None:
    pipe = Pipe({"format": "databus", "partition_by": "primary_key"}, partitions=3)
    (message,) = pipe.messages(BEGIN, SnapshotTruncate(TABLE.fingerprint))
    assert [partition.number for partition in message.partitions] == [0, 1, 2]
    statement = message.content
    assert isinstance(statement, DdlStatement)
    assert (statement.action, statement.query) == (Action.TRUNCATE, b"TRUNCATE TABLE `shop`.`it``ems`")
    assert (statement.before, statement.start, statement.end) == (TABLE, 480, 480)
    (record,) = message.encode()
    assert record.key == b'{"Pos":{"Name":"binlog.3","Pos":480},"Action":"DDL"}'


def test_rows_and_truncations_need_a_transaction() -> None:
    for event in rows(1), SnapshotTruncate(TABLE.fingerprint):
        with pytest.raises(GenerationLost):
            Pipe({}).messages(event)


def test_transactions_of_the_source_number_their_rows_as_before() -> None:
    pipe = Pipe({"format": "maxwell-json"})
    pipe.records(rows(1, 2))
    packed = msgspec.Raw(msgspec.msgpack.encode([[b"1", None]]))
    records = pipe.records(RowsEvent(TABLE.fingerprint, Action.INSERT, 0, 490, 500, packed))
    assert [value["commit"] for value in values(records)] == [True]
