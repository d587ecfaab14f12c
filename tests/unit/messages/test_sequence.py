"""Every record has its place in the pipeline's order as a header, which is the same in all formats."""

from typing import Any

import msgspec
import pytest

from databus_core.events import (
    Action,
    Begin,
    Column,
    Commit,
    DatabaseEvent,
    Event,
    Heartbeat,
    QueryEvent,
    RowsEvent,
    SnapshotEvent,
    SnapshotTruncate,
    Table,
    TableDefinition,
)
from databus_core.settings import Publisher
from databus_messages.encoder import EventEncoder
from databus_messages.formats.base import MessageSource, Record
from databus_messages.message import Message
from databus_messages.outputs import plan_outputs

COLUMNS = (Column(name="id", type="int", raw_type="int"), Column(name="v", type="int", raw_type="int"))
TABLE = Table(schema="shop", name="items", columns=COLUMNS, primary_key=(0,))
OTHER = Table(schema="shop", name="other", columns=COLUMNS, primary_key=(0,))
BEGIN, COMMIT = Begin(41, "0-1-7", "binlog.3", 1, 9, 5_000_000, 400, 440), Commit("0-1-7", "binlog.3", 990, 5, 960)
PLAIN = ["databus", "canal-json", "canal-protobuf", "debezium-json", "maxwell-json", "tdsql", "dip"]
#: formats with a record for each row
BY_ROW = ["debezium-json", "maxwell-json", "tdsql", "dip"]


class Pipe:
    """An encoder whose topics all have the same number of partitions; 40 transactions were published before."""

    def __init__(self, partitions: int = 1, **route: Any) -> None:
        publisher = Publisher.model_validate({"routes": [{"match": ["*.items"]} | route]})
        source, counts = MessageSource("shop", "mariadb", "127.0.0.1", 3306), {"shop.shop": partitions}
        plans = plan_outputs(publisher.rules)
        counts |= {f"shop.shop.{table.name}": partitions for table in (TABLE, OTHER)}
        self._encoder = EventEncoder(publisher.rules, plans, source, counts, transaction=40)
        self.messages(TableDefinition(TABLE), TableDefinition(OTHER))

    def messages(self, *events: Event) -> list[Message]:
        return [message for event in events for message in self._encoder.messages(event)]

    def records(self, *events: Event) -> list[Record]:
        # encoded one by one, because formats have state
        return [record for event in events for message in self.messages(event) for record in message.sequenced()]

    def sequences(self, *events: Event) -> list[str]:
        return list(map(sequence, self.records(*events)))


def sequence(record: Record) -> str:
    """Return a record's sequence without the leading zeros of its ordinals."""
    values = [value for name, value in record.headers if name == "databus.sequence"]
    assert [len(value) for value in values] == [27]
    transaction, row = values[0].split(b"-")
    return f"{int(transaction)}-{int(row)}"


def rows(action: Action, row: int, *cells: int, table: Table = TABLE) -> RowsEvent:
    packed = msgspec.Raw(msgspec.msgpack.encode([[b"%d" % cell, b"1"] for cell in cells]))
    return RowsEvent(table.fingerprint, action, row, 500 + row, 600 + row, packed)


@pytest.mark.parametrize("format_name", BY_ROW)
def test_rows_are_counted_with_those_that_the_output_does_not_publish(format_name: str) -> None:
    """Also in formats that number only the rows that they publish."""
    elsewhere = rows(Action.INSERT, 0, 1, 2, 3, table=OTHER)
    pipe = Pipe(format=format_name, where=[{"column": "id", "not_in": ["5"]}])
    found = pipe.sequences(BEGIN, elsewhere, rows(Action.INSERT, 3, 4, 5, 6), COMMIT)
    # tdsql also has a GTID and an XID
    assert found == (["41-3", "41-3", "41-5", "41-6"] if format_name == "tdsql" else ["41-3", "41-5"])


@pytest.mark.parametrize("format_name", PLAIN)
def test_all_formats_give_the_first_row_of_an_event_the_same_sequence(format_name: str) -> None:
    found = Pipe(format=format_name).sequences(BEGIN, rows(Action.DELETE, 7, 1, 2), COMMIT)
    assert found[0] == "41-7"
    assert set(found) <= {"41-7", "41-8", "41-9"}


def test_frames_have_the_sequence_of_the_row_after_them() -> None:
    events = BEGIN, rows(Action.INSERT, 0, 1, 2), rows(Action.UPDATE, 2, 1, 1, 2, 2), COMMIT
    assert Pipe(format="canal-protobuf").sequences(*events) == ["41-0", "41-0", "41-2", "41-4"]
    # GTID, four rows, XID
    assert Pipe(format="tdsql").sequences(*events) == ["41-0", "41-0", "41-1", "41-2", "41-3", "41-4"]
    debezium = Pipe(format="debezium-json", options={"provide_transaction_metadata": True})
    assert debezium.sequences(*events) == ["41-0", "41-0", "41-1", "41-2", "41-3", "41-4"]
    unseen = *events[:-1], rows(Action.DELETE, 4, 1, table=OTHER), COMMIT
    assert Pipe(format="canal-protobuf").sequences(*unseen)[-1] == "41-5"


@pytest.mark.parametrize("format_name", ["debezium-json", "maxwell-json"])
def test_partitions_and_halves_keep_each_rows_sequence(format_name: str) -> None:
    pipe = Pipe(3, format=format_name, partition_by="primary_key")
    elsewhere, insert = rows(Action.INSERT, 0, 1, 2, 3, 4, table=OTHER), rows(Action.INSERT, 4, *range(30))
    messages = pipe.messages(BEGIN, elsewhere, insert, COMMIT)
    found = {
        record.key: sequence(record) for each in messages for half in each.halves() or () for record in half.sequenced()
    }
    assert len(found) == 30
    for key, place in found.items():
        assert key
        number = next(value for name, value in key_of(key).items() if name.endswith("id"))
        assert place == f"41-{4 + number}"


def key_of(key: bytes) -> dict[str, Any]:
    """Return the members of a key, in Debezium's format without its schema."""
    members: dict[str, Any] = msgspec.json.decode(key)
    payload: dict[str, Any] = members.get("payload", members)
    return payload


def test_the_records_of_one_row_change_share_its_sequence() -> None:
    found = Pipe(format="debezium-json").sequences(
        BEGIN, rows(Action.DELETE, 0, 1, 2), rows(Action.UPDATE, 2, 3, 4, 5, 5), COMMIT
    )
    # a delete with its tombstone, twice; delete, tombstone and create of the changed key; an update
    assert found == ["41-0"] * 2 + ["41-1"] * 2 + ["41-2"] * 3 + ["41-3"]


def test_rows_that_a_transaction_buffers_in_its_file_keep_their_sequences() -> None:
    first, large = rows(Action.INSERT, 0, 1, table=OTHER), rows(Action.INSERT, 1, *range(200_000))
    pipe = Pipe(format="maxwell-json", where=[{"column": "id", "not_in": ["0"]}])
    found = pipe.sequences(BEGIN, first, large, rows(Action.INSERT, 200_001, 1), COMMIT)
    assert found == [f"41-{row}" for row in range(2, 200_002)]


def test_statements_come_before_the_row_with_their_sequence() -> None:
    query = b"TRUNCATE TABLE shop.items"
    statement = QueryEvent(TABLE.fingerprint, Action.TRUNCATE, query, 450, 480, TABLE.fingerprint)
    again = msgspec.structs.replace(BEGIN, transaction=42)
    found = Pipe(format="databus").sequences(BEGIN, rows(Action.INSERT, 0, 1, 2), statement, COMMIT, again, statement)
    assert found == ["41-0", "41-2", "42-0"]
    database = DatabaseEvent("shop", Action.CREATE, b"CREATE DATABASE shop", 450, 480, "utf8mb4")
    assert Pipe(format="databus").sequences(BEGIN, statement, COMMIT) == ["41-0"]
    assert Pipe(format="canal-json").sequences(BEGIN, rows(Action.INSERT, 0, 1, 2), database, COMMIT) == [
        "41-0",
        "41-2",
    ]
    truncation = SnapshotTruncate(TABLE.fingerprint)
    loaded = SnapshotEvent(TABLE.fingerprint, 0, rows(Action.INSERT, 0, 1, 2).rows, 1)
    empty = SnapshotEvent(TABLE.fingerprint, 2, rows(Action.INSERT, 0).rows, 1, last_of_table=True)
    assert Pipe(format="debezium-json", options={"skipped_operations": []}).sequences(
        BEGIN, truncation, loaded, truncation, COMMIT
    ) == ["41-0", "41-0", "41-0", "41-1", "41-2", "41-2"]
    assert Pipe(format="maxwell-json").sequences(BEGIN, loaded, empty, COMMIT) == ["41-0", "41-1", "41-2"]


def test_a_heartbeat_has_the_sequence_of_the_next_transactions_first_row() -> None:
    pipe = Pipe(format="debezium-json", options={"heartbeat_interval_ms": 1})
    assert pipe.sequences(Heartbeat("", "binlog.3", 10, 1_000_000)) == ["41-0"]
    assert pipe.sequences(BEGIN, rows(Action.INSERT, 0, 1, 2), COMMIT) == ["41-0", "41-1", "42-0"]
    assert pipe.sequences(Heartbeat("", "binlog.3", 1010, 9_000_000)) == ["42-0"]


def test_keys_and_values_are_those_without_a_sequence() -> None:
    for format_name in PLAIN:
        (message, *_) = Pipe(format=format_name).messages(BEGIN, rows(Action.INSERT, 0, 1, 2), COMMIT)
        plain, numbered = message.encode(), message.sequenced()
        if format_name not in {"canal-json", "debezium-json"}:  # these have the time of encoding
            assert [record[:2] for record in plain] == [record[:2] for record in numbered]
        assert all(not record.headers for record in plain)
