"""`debezium-json`: envelopes, schemas, keys and metadata topics, compared with examples."""

from dataclasses import replace

import msgspec
import pytest

from databus_binlog import Position
from databus_core.errors import PoisonError
from databus_core.events import Action, Begin, Column, Index, Row, Table
from databus_messages.formats.base import Change, Record, SnapshotRows, TransactionEnd
from databus_wire.packed_rows import PackedRows
from unit.messages.formats.debezium_samples import (
    BEGIN,
    MARIADB,
    SOURCE,
    T1,
    change,
    debezium,
    one_column,
    schemaless,
    statement,
    value,
)

ANNE = [b"1", b"Anne"]
TIMES = '"ts_ms":1700000000042,"ts_us":1700000000042123,"ts_ns":1700000000042123456}'
UPDATE = (
    '{"before":{"id":1,"name":"Anne"},"after":{"id":1,"name":"Anne Marie"},"source":' + SOURCE + ","
    '"transaction":null,"op":"u",' + TIMES
)
VALUE_FIELDS = (
    '[{"type":"int32","optional":false,"field":"id"},{"type":"string","optional":true,"field":"name"}],'
    '"optional":true,"name":"srv1.test.t1.Value"'
)

ENVELOPE_SCHEMA = (
    '{"type":"struct","fields":['
    '{"type":"struct","fields":' + VALUE_FIELDS + ',"field":"before"},'
    '{"type":"struct","fields":' + VALUE_FIELDS + ',"field":"after"},'
    '{"type":"struct","fields":[{"type":"string","optional":false,"field":"version"},'
    '{"type":"string","optional":false,"field":"connector"},{"type":"string","optional":false,"field":"name"},'
    '{"type":"int64","optional":false,"field":"ts_ms"},'
    '{"type":"string","optional":true,"name":"io.debezium.data.Enum","version":1,"parameters":{"allowed":'
    '"true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"},"default":"false",'
    '"field":"snapshot"},{"type":"string","optional":false,"field":"db"},'
    '{"type":"string","optional":true,"field":"sequence"},{"type":"int64","optional":true,"field":"ts_us"},'
    '{"type":"int64","optional":true,"field":"ts_ns"},{"type":"string","optional":true,"field":"table"},'
    '{"type":"int64","optional":false,"field":"server_id"},{"type":"string","optional":true,"field":"gtid"},'
    '{"type":"string","optional":false,"field":"file"},{"type":"int64","optional":false,"field":"pos"},'
    '{"type":"int32","optional":false,"field":"row"},{"type":"int64","optional":true,"field":"thread"},'
    '{"type":"string","optional":true,"field":"query"}],"optional":false,'
    '"name":"io.debezium.connector.mysql.Source","version":1,"field":"source"},'
    '{"type":"struct","fields":[{"type":"string","optional":false,"field":"id"},'
    '{"type":"int64","optional":false,"field":"total_order"},'
    '{"type":"int64","optional":false,"field":"data_collection_order"}],"optional":true,"name":"event.block",'
    '"version":1,"field":"transaction"},'
    '{"type":"string","optional":false,"field":"op"},{"type":"int64","optional":true,"field":"ts_ms"},'
    '{"type":"int64","optional":true,"field":"ts_us"},{"type":"int64","optional":true,"field":"ts_ns"}],'
    '"optional":false,"name":"srv1.test.t1.Envelope","version":2}'
)
KEY_SCHEMA = (
    '{"type":"struct","fields":[{"type":"int32","optional":false,"field":"id"}],'
    '"optional":false,"name":"srv1.test.t1.Key"}'
)


def test_an_update_without_schemas_is_encoded_as_in_the_example() -> None:
    (record,) = schemaless().change(change(Action.UPDATE, ANNE, [b"1", b"Anne Marie"]))
    assert (record.key, record.headers, record.topic) == (b'{"id":1}', (), None)
    assert record.value is not None
    assert record.value.decode() == UPDATE


def test_with_schemas_key_and_value_contain_their_schemas() -> None:
    (record,) = debezium().change(change(Action.UPDATE, ANNE, [b"1", b"Anne Marie"]))
    assert record.key is not None
    assert record.key.decode() == '{"schema":' + KEY_SCHEMA + ',"payload":{"id":1}}'
    assert record.value is not None
    assert record.value.decode() == '{"schema":' + ENVELOPE_SCHEMA + ',"payload":' + UPDATE + "}"


def test_each_row_is_a_record_with_its_number_in_the_event() -> None:
    rows = [[b"%d" % number, None] for number in range(1, 6)]
    records = list(schemaless().change(change(Action.INSERT, *rows)))
    assert [record.key for record in records] == [b'{"id":%d}' % number for number in range(1, 6)]
    assert [value(record)["after"] for record in records] == [{"id": number, "name": None} for number in range(1, 6)]
    assert [value(record)["source"]["row"] for record in records] == [0, 1, 2, 3, 4]
    assert {(value(record)["op"], value(record)["before"]) for record in records} == {("c", None)}


def test_rows_of_a_split_event_keep_their_row_numbers() -> None:
    part = msgspec.structs.replace(change(Action.INSERT, ANNE, ANNE, first=10), ordinals=(11, 14))
    assert [value(record)["source"]["row"] for record in schemaless().change(part)] == [1, 4]


@pytest.mark.parametrize("rows", [1, 5])
def test_one_update_and_several_are_encoded_alike(rows: int) -> None:
    records = list(schemaless().change(change(Action.UPDATE, *[ANNE, [b"1", None]] * rows)))
    assert [value(record)["after"] for record in records] == [{"id": 1, "name": None}] * rows
    assert [value(record)["before"] for record in records] == [{"id": 1, "name": "Anne"}] * rows


@pytest.mark.parametrize(
    ("action", "rows"),
    [
        (Action.INSERT, [ANNE, [b"2", None]]),
        (Action.DELETE, [ANNE, [b"2", None]]),
        (Action.UPDATE, [ANNE, [b"1", None]]),
        (Action.UPDATE, [ANNE, [b"3", None], ANNE, [b"1", b"Bo"]]),
    ],
)
def test_packed_rows_and_lists_are_encoded_as_the_same_records(action: Action, rows: list[Row]) -> None:
    unpacked = change(action, *rows)
    packed = msgspec.structs.replace(unpacked, rows=PackedRows(msgspec.Raw(msgspec.msgpack.encode(rows))))
    assert list(schemaless().change(packed)) == list(schemaless().change(unpacked))


def test_a_delete_is_followed_by_a_tombstone_unless_disabled() -> None:
    deleted, tombstone = schemaless().change(change(Action.DELETE, ANNE))
    assert (value(deleted)["op"], value(deleted)["before"]) == ("d", {"id": 1, "name": "Anne"})
    assert value(deleted)["after"] is None
    assert tombstone == Record(b'{"id":1}', None)
    (alone,) = schemaless(tombstones_on_delete=False).change(change(Action.DELETE, ANNE))
    assert alone == deleted


def test_an_update_of_the_key_is_a_delete_a_tombstone_and_an_insert() -> None:
    rows = [ANNE, [b"1", b"Bo"], ANNE, [b"2", b"Anne"]]
    updated, deleted, tombstone, created = debezium().change(change(Action.UPDATE, *rows))
    old, new = (f'{{"schema":{KEY_SCHEMA},"payload":{{"id":{key}}}}}' for key in (1, 2))
    assert value(updated)["payload"]["op"] == "u"
    assert (deleted.key, deleted.headers) == (old.encode(), [("__debezium.newkey", new.encode())])
    assert tombstone == Record(old.encode(), None, deleted.headers, row=1)
    assert (created.key, created.headers) == (new.encode(), [("__debezium.oldkey", old.encode())])
    payloads = [value(record)["payload"] for record in (deleted, created)]
    assert [payload["op"] for payload in payloads] == ["d", "c"]
    assert [payload["source"]["row"] for payload in payloads] == [1, 1]
    assert (payloads[0]["before"], payloads[0]["after"]) == ({"id": 1, "name": "Anne"}, None)
    assert (payloads[1]["before"], payloads[1]["after"]) == (None, {"id": 2, "name": "Anne"})


def test_key_fields_are_in_primary_key_order_and_the_key_is_null_without_a_primary_key() -> None:
    b, a = (Column(name=name, type="int", raw_type="int") for name in "ba")
    table = Table(schema="test", name="t1", columns=(a, b), primary_key=(1, 0))
    (record,) = schemaless().change(change(Action.INSERT, [b"1", b"2"], table=table))
    assert record.key == b'{"b":2,"a":1}'
    (deleted,) = schemaless().change(
        change(Action.DELETE, [b"1", b"2"], table=msgspec.structs.replace(table, primary_key=()))
    )
    assert deleted.key is None


def test_a_unique_key_is_the_record_key_and_in_schema_changes_if_there_is_no_primary_key() -> None:
    b, a = (Column(name=name, type="int", raw_type="int") for name in "ba")
    unique = Index("u", ("b", "a"), unique=True)
    table = Table(schema="test", name="t1", columns=(a, b), indexes=(Index("i", ("a",)), unique))
    (record,) = schemaless().change(change(Action.INSERT, [b"1", b"2"], table=table))
    assert record.key == b'{"b":2,"a":1}'
    (altered,) = schemaless().statement(statement(Action.ALTER, b"alter table t1 add unique u (b, a)", table))
    assert value(altered)["tableChanges"][0]["table"]["primaryKeyColumnNames"] == ["b", "a"]


def test_schema_names_are_sanitized_and_column_names_are_not() -> None:
    column = Column(name='nä"me', type="int", raw_type="int")
    table = Table(schema="Odd-näme", name="x", columns=(column,), primary_key=(0,))
    (record,) = debezium().change(change(Action.INSERT, [b"1"], table=table))
    assert value(record)["schema"]["name"] == "srv1.Odd-n_me.x.Envelope"
    assert value(record)["payload"]["after"] == {'nä"me': 1}
    assert value(record)["payload"]["source"]["db"] == "Odd-näme"


def test_the_source_has_the_gtid_and_null_for_unknown_fields() -> None:
    begin = Begin(1, "5-777-42", "x.000001", 777, 0, 1_700_000_000_123_456)
    (record,) = schemaless(MARIADB, prefix="p", version="9").change(change(Action.INSERT, ANNE, begin=begin))
    source = value(record)["source"]
    assert (source["connector"], source["name"], source["version"]) == ("mariadb", "p", "9")
    assert (source["gtid"], source["thread"]) == ("5-777-42", None)
    assert (source["ts_ms"], source["ts_us"]) == (1_700_000_000_123, 1_700_000_000_123_456)
    (record,) = debezium(MARIADB).change(change(Action.INSERT, ANNE))
    assert value(record)["schema"]["fields"][2]["name"] == "io.debezium.connector.mariadb.Source"


def test_include_query_puts_the_statement_into_all_of_its_events() -> None:
    events = [
        change(Action.INSERT, ANNE, query="insert 'é'".encode()),
        change(Action.INSERT, ANNE, first=1, start=560),
        change(Action.INSERT, ANNE, first=2, start=900),  # another statement, whose first event is not published here
    ]
    format_ = schemaless(include_query=True)
    queries = [value(record)["source"]["query"] for event in events for record in format_.change(event)]
    assert queries == ["insert 'é'", "insert 'é'", None]
    format_.begin(BEGIN)
    (record,) = format_.change(events[1])
    assert value(record)["source"]["query"] is None
    (record,) = schemaless().change(events[0])
    assert value(record)["source"]["query"] is None


def test_skipped_operations_make_no_record() -> None:
    format_ = schemaless(skipped_operations=["c", "d"])
    assert not list(format_.change(change(Action.INSERT, ANNE)))
    assert not list(format_.change(change(Action.DELETE, ANNE)))
    assert len(list(format_.change(change(Action.UPDATE, ANNE, ANNE)))) == 1


def test_text_that_is_not_utf8_is_rejected_without_quoting_it() -> None:
    with pytest.raises(PoisonError, match=r"^a row of test\.t1 has a value that does not fit its column \(ValueError"):
        list(schemaless().change(change(Action.INSERT, [b"1", b"\xe4secret"])))


def test_ddl_that_is_not_utf8_is_rejected() -> None:
    with pytest.raises(PoisonError, match="not in UTF-8"):
        list(schemaless().statement(statement(Action.ALTER, b"alter table t1 comment 'f\xfcr'")))


def test_a_transaction_has_begin_end_and_the_order_of_each_change() -> None:
    source_begin = Begin(1, "9e2f:5", "mysql-bin.000003", 1, 7, 1_700_000_000_000_000)
    other = msgspec.structs.replace(T1, name="t2")
    format_ = schemaless(provide_transaction_metadata=True)
    assert not list(format_.begin(source_begin))
    whole_event = change(Action.INSERT, ANNE, [b"2", None], [b"3", None], begin=source_begin)
    changes = [
        msgspec.structs.replace(whole_event, ordinals=(0, 2), rows=whole_event.rows[::2]),
        msgspec.structs.replace(whole_event, ordinals=(1,), rows=whole_event.rows[1:2]),
        change(Action.INSERT, ANNE, table=other, begin=source_begin, first=3),
        change(Action.UPDATE, ANNE, [b"9", None], begin=source_begin, first=4),
    ]
    begin, *records = [record for each in changes for record in format_.change(each)]
    assert (begin.topic, begin.key) == ("srv1.transaction", b'{"id":"9e2f:5"}')
    assert begin.value == (
        b'{"status":"BEGIN","id":"9e2f:5","event_count":null,"data_collections":null,"ts_ms":1700000000000}'
    )
    orders = [tuple(value(record)["transaction"].values()) for record in records if record.value]
    assert orders == [
        ("9e2f:5", 1, 1), ("9e2f:5", 3, 3), ("9e2f:5", 2, 2),
        ("9e2f:5", 4, 1),
        ("9e2f:5", 5, 4), ("9e2f:5", 5, 4),
    ]  # fmt: skip
    (end,) = format_.end(source_begin, TransactionEnd(1, 900, 5))
    assert end.value == (
        b'{"status":"END","id":"9e2f:5","event_count":6,"data_collections":['
        b'{"data_collection":"test.t1","event_count":5},{"data_collection":"test.t2","event_count":1}],'
        b'"ts_ms":1700000000000}'
    )


def test_without_a_gtid_the_transaction_id_is_the_first_changes_position_and_ddl_has_no_begin_or_end() -> None:
    format_ = schemaless(provide_transaction_metadata=True, include_schema_changes=False)
    format_.begin(BEGIN)
    begin, _ = format_.change(change(Action.INSERT, ANNE))
    assert begin.key == b'{"id":"file=mysql-bin.000003,pos=484"}'
    format_.begin(BEGIN)
    assert not list(format_.statement(statement(Action.DROP, b"drop table t1")))
    assert not list(format_.end(BEGIN, TransactionEnd(None, 900, 0)))


def test_begin_is_published_even_if_the_transactions_first_change_is_rejected() -> None:
    time = one_column("time")
    format_ = schemaless(provide_transaction_metadata=True, time="connect")
    with pytest.raises(PoisonError):
        format_.change(change(Action.INSERT, [b"-01:00:00"], table=time))
    later = msgspec.structs.replace(change(Action.INSERT, [b"01:00:00"], table=time, first=1), start=999)
    begin, row = format_.change(later)
    assert (value(begin)["status"], value(begin)["id"]) == ("BEGIN", "file=mysql-bin.000003,pos=484")
    assert value(row)["transaction"]["data_collection_order"] == 2
    rejected = schemaless(provide_transaction_metadata=True, time="connect")
    with pytest.raises(PoisonError):
        rejected.change(change(Action.INSERT, [b"-01:00:00"], table=time))
    assert not list(rejected.end(BEGIN, TransactionEnd(1, 900, 1)))


def test_errors_about_text_that_is_not_utf8_do_not_quote_it() -> None:
    with pytest.raises(PoisonError, match=r"^a row of test\.t1 has a value that does not fit its column \(\w+\)$"):
        schemaless().change(change(Action.INSERT, [b"1", b"\xff"]))
    with pytest.raises(PoisonError, match=r"^a statement on test\.t1 is not in UTF-8$"):
        list(schemaless().statement(statement(Action.ALTER, b"alter table t1 comment '\xff'")))


def test_a_heartbeat_is_published_at_most_once_an_interval() -> None:
    format_ = schemaless(heartbeat_interval_ms=10_000)
    (record,) = format_.heartbeat(1_700_000_000_000_000)
    assert record == Record(b'{"serverName":"srv1"}', b'{"ts_ms":1700000000000}', topic="__debezium-heartbeat.srv1")
    assert not list(format_.heartbeat(1_700_000_009_999_999))
    assert list(format_.heartbeat(1_700_000_010_000_000))
    assert not list(schemaless().heartbeat(1_700_000_000_000_000))


def test_only_enabled_metadata_topics_are_named() -> None:
    assert list(schemaless().topics()) == ["srv1"]
    everything = schemaless(prefix="p", provide_transaction_metadata=True, heartbeat_interval_ms=1)
    assert list(everything.topics()) == ["p", "p.transaction", "__debezium-heartbeat.p"]
    assert list(schemaless(include_schema_changes=False).topics()) == []


def test_rows_of_a_dump_have_snapshot_markers() -> None:
    rows = [[b"%d" % number, None] for number in range(4)]
    dump = SnapshotRows(T1, Position("", "mysql-bin.000003", 154), 1_700_000_000_000_000, rows)
    format_ = schemaless()

    def markers(**flags: bool) -> list[str]:
        return [value(record)["source"]["snapshot"] for record in format_.snapshot(replace(dump, **flags))]

    ends = {"first_of_table": True, "last_of_table": True}
    assert markers() == ["true"] * 4
    assert markers(**ends) == ["first_in_data_collection", "true", "true", "last_in_data_collection"]
    assert markers(first=True, last=True, **ends) == ["first", "true", "true", "last"]
    (record,) = format_.snapshot(replace(dump, rows=rows[:1], first=True, last=True, **ends))
    assert value(record)["source"]["snapshot"] == "last"
    assert record.key == b'{"id":0}'
    assert (value(record)["op"], value(record)["after"], value(record)["transaction"]) == (
        "r",
        {"id": 0, "name": None},
        None,
    )
    source = value(record)["source"]
    assert [source[name] for name in ("ts_ms", "file", "pos", "row", "server_id", "gtid", "thread")] == [
        1_700_000_000_000, "mysql-bin.000003", 154, 0, 0, None, None,
    ]  # fmt: skip
    assert not list(format_.snapshot(replace(dump, rows=[], first=True, **ends)))


def test_a_new_definition_applies_from_its_first_event_on() -> None:
    wider = msgspec.structs.replace(T1, columns=(*T1.columns, Column(name="n", type="int", raw_type="int")))
    format_ = schemaless()
    events: list[Change] = [change(Action.INSERT, ANNE), change(Action.INSERT, [*ANNE, b"3"], table=wider)]
    (old,), (new,) = map(format_.change, events)
    assert (value(old)["after"], value(new)["after"]) == ({"id": 1, "name": "Anne"}, {"id": 1, "name": "Anne", "n": 3})
