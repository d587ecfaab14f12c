"""Compiled code and the Python path publish the same: the same records, progress, dead letters and errors."""

from collections.abc import Sequence
from typing import Any, cast
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common.event_streams import streams
from common.event_writer import Stream
from common.publications import Broker, outcome_of
from databus_binlog import ABSENT, Position
from databus_core.events import (
    Action,
    Begin,
    Column,
    Commit,
    Event,
    OversizedRow,
    QueryEvent,
    Row,
    RowsEvent,
    Skipped,
    SnapshotEvent,
    Start,
    Table,
    TableDefinition,
    decode_events,
)
from databus_core.names import SEQUENCE_HEADER
from databus_publisher.batches import Limit
from databus_wire.kafka_records import sequence_text

_MAXWELL = {
    "output_binlog_position": True,
    "output_gtid_position": True,
    "output_server_id": True,
    "output_thread_id": True,
}
#: formats and options. Those without a compiled writer cost little, and are here for when they get one.
CASES: list[tuple[str, dict[str, Any]]] = [
    ("databus", {}),
    ("databus", {"compat": "strict"}),
    ("debezium-json", {}),
    ("debezium-json", {"schemas_enable": False, "include_query": True, "bigint_unsigned": "precise"}),
    ("debezium-json", {"schemas_enable": False, "tombstones_on_delete": False, "decimal": "string", "binary": "hex"}),
    ("debezium-json", {"schemas_enable": False, "skipped_operations": ["u"], "decimal": "double", "time": "connect"}),
    ("debezium-json", {"schemas_enable": False, "provide_transaction_metadata": True, "time": "isostring"}),
    ("debezium-json", {"provide_transaction_metadata": True, "skipped_operations": ["d"]}),
    ("debezium-json", {"schemas_enable": False, "heartbeat_interval_ms": 1}),
    ("maxwell-json", {}),
    ("maxwell-json", {"output_xoffset": True, "output_primary_keys": True, "output_primary_key_columns": True}),
    ("maxwell-json", {"output_commit_info": False, "output_nulls": False, "output_null_zerodates": True}),
    ("maxwell-json", {**_MAXWELL, "kafka_key_format": "array", "output_ddl": True}),
    ("maxwell-json", {"output_row_query": True}),
    ("canal-json", {}),
    ("canal-protobuf", {}),
    ("tdsql", {}),
    ("dip", {}),
]
#: what a second output has
_SECOND = st.sampled_from(["databus", "databus", "maxwell-json", "canal-json", "debezium-json"])


def name_of(case: tuple[str, dict[str, Any]]) -> str:
    return ",".join([case[0], *(f"{name}={value}" for name, value in case[1].items())])


@st.composite
def publishers(draw: st.DrawFn, message_format: str, options: dict[str, Any], stream: Stream) -> dict[str, Any]:
    """Draw the section `publisher`: rules for the format, and perhaps another rule for one of the stream's tables."""
    topic = draw(st.sampled_from(["{schema}.{table}", "all"]))
    by = draw(st.sampled_from(["table"] * 4 + ["primary_key", "single"]))
    every = {"match": ["*.*"], "format": message_format, "options": options, "topic": topic, "partition_by": by}
    table = draw(st.sampled_from(stream.tables))
    one, column = every | {"match": [table.full_name]}, table.columns[-1].name
    special = {
        "": [],
        "drop": [{"match": [table.full_name], "drop": True}],
        "masked": [one | {"mask": [column]}],
        "filtered": [one | {"where": [{"column": column, "is_null": False}]}],
        "projected": [one | {"columns": {"exclude": [column]}}],
        "refused": [one | {"topic": "refused"}],
        "unnamed": [one | {"topic": "unnamed"}],
        "second": [one | {"output": "second", "format": draw(_SECOND), "options": {}, "topic": "second"}],
    }[
        draw(
            st.sampled_from(
                ["", "", "", "", "", "drop", "masked", "filtered", "projected", "refused", "unnamed", "second"]
            )
        )
    ]
    oversize = draw(st.sampled_from(["deadletter", "split", "stop"]))
    delivery = draw(st.sampled_from(["exactly_once", "exactly_once", "at_least_once"]))
    return {"routes": [*special, every], "oversize": oversize, "delivery": delivery}


brokers = st.builds(
    Broker,
    partitions=st.sampled_from([1, 1, 1, 3]),
    limit=st.sampled_from([Limit(2**20)] * 3 + [Limit(2**20, 9000), Limit(2**20, 2000), Limit(1500, 800)]),
)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_both_paths_publish_the_same(case: tuple[str, dict[str, Any]]) -> None:
    @settings(derandomize=True, max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def check(data: st.DataObject) -> None:
        stream, broker = data.draw(streams()), data.draw(brokers)
        on_doubt = data.draw(st.sampled_from(["park", "park", "stop"]))
        sections = {"publisher": data.draw(publishers(*case, stream)), "doubt": {"on_doubt": on_doubt}}
        assert outcome_of(stream, sections, broker, pure=False) == outcome_of(stream, sections, broker, pure=True)

    check()


# --- which transactions take the fast path ---------------------------------------------------------------------------

_COLUMNS = Column(name="id", type="int", raw_type="int"), Column(name="v", type="text", raw_type="text", nullable=True)
A, B = (Table(schema="s", name=name, columns=_COLUMNS, primary_key=(0,)) for name in "ab")


def rows(action: str = "insert", *images: Row, table: Table = A, **more: Any) -> RowsEvent:
    packed = msgspec.Raw(msgspec.msgpack.encode(images or [[b"1", b"x"]]))
    return RowsEvent(table.fingerprint, Action(action), 0, 5, 7, packed, **more)


def transaction(number: int, *content: Event) -> list[Event]:
    return [Begin(number, "", "log.1", 1, 1, number), *content, Commit("", "log.1", 9, None)]


def stream_of(*entries: Sequence[Event]) -> Stream:
    """Return entries after one with the first event of table A."""
    start = [Start(Position("", "log.1", 4), "server", "mysql", 1, in_order=True), *map(TableDefinition, (A, B))]
    first = [*start, *transaction(1, rows(), rows("insert", [b"2", b"x"], [b"3", b"x"], [b"5", b"x"]))]
    return Stream((A, B), [first, *entries], [False] * (1 + len(entries)))


def left_to_python(publisher: dict[str, Any], *entries: Sequence[Event], partitions: int = 1) -> list[int]:
    """Publish entries after `stream_of`'s first, by both paths. Return which transactions were left to Python."""
    found: list[int] = []

    def decode(payload: bytes) -> list[Event]:
        events = decode_events(payload)
        found.extend(event.transaction for event in events if isinstance(event, Begin))
        return events

    stream, broker = stream_of(*entries), Broker(partitions, Limit(2**20, 9000))
    with patch("databus_publisher.publication.decode_events", decode):
        outcome = outcome_of(stream, {"publisher": publisher}, broker, pure=False)
    assert outcome == outcome_of(stream, {"publisher": publisher}, broker, pure=True)
    assert outcome.error is None
    assert outcome.commits[-1].transaction == sum(isinstance(e, Begin) for entry in stream.entries for e in entry)
    return found


@pytest.mark.parametrize("by", ["table", "primary_key"])
@pytest.mark.parametrize("message_format", ["databus", "debezium-json", "maxwell-json", "canal-json"])
def test_fast_path_are_published_by_compiled_code(message_format: str, by: str) -> None:
    changes = rows(), rows("update", [b"1", b"x"], [b"1", None]), rows("delete", [b"1", None])
    options = {"schemas_enable": False} if message_format == "debezium-json" else {}
    publisher = {"format": message_format, "options": options, "partition_by": by}
    entries = transaction(2, *changes), [*transaction(3), *transaction(4, changes[0])]
    assert left_to_python(publisher, *entries, partitions=3) == [1]


_NEW_KEY = rows("update", [b"1", b"x"], [b"2", b"x"])
_BY_KEY = {"partition_by": "primary_key"}
_DEBEZIUM: dict[str, Any] = {"format": "debezium-json", "options": {"schemas_enable": False}}
_METADATA = {"provide_transaction_metadata": True}
_TO_FRAMES = {"match": ["*.*"], "topic": "shop.transaction"}
_FRAMED = [{"match": [f"s.{name}"], "format": "canal-protobuf"} for name in "bc"]


@pytest.mark.parametrize(
    ("content", "publisher", "left"),
    [
        ([rows(), rows()], {}, [1]),
        ([_NEW_KEY], {}, [1]),
        ([_NEW_KEY], _DEBEZIUM, [1, 2]),
        ([_NEW_KEY], {"format": "maxwell-json"} | _BY_KEY, [1, 2]),
        ([rows("update", [b"1", cast(bytes, ABSENT)], [b"1", b"x"], partial=True)], {}, [1, 2]),
        ([rows("insert", [b"1", b"\xff"])], {}, [1]),
        ([rows("insert", [b"1", b"\xff"])], _DEBEZIUM, [1, 2]),
        ([rows("insert", [b"1", b"x" * 9000])], {}, [1, 2]),
        ([rows(table=B)], {}, [1, 2]),
        ([rows()], {"options": {"compat": "strict"}}, [1, 2, 3]),
        ([rows()], _DEBEZIUM | {"options": _METADATA}, [1]),
        (
            [rows()],
            {"routes": [_DEBEZIUM | {"options": _METADATA, "match": [f"s.{name}"]} for name in "ab"]},
            [1, 2, 3],
        ),
        ([rows()], {"routes": [*_FRAMED, {"match": ["*.*"]}]}, [1]),
        ([rows()], {"routes": [{"match": ["s.b"]} | _DEBEZIUM | {"options": _METADATA}, _TO_FRAMES]}, [1, 2, 3]),
        ([rows()], _DEBEZIUM | {"options": {"heartbeat_interval_ms": 1}}, [1, 2, 3]),
        ([rows()], {"routes": [{"match": ["*.*"], "mask": ["v"]}]}, [1, 2, 3]),
        ([rows()], {"routes": [{"match": ["*.*"], "drop": True}]}, [1]),
        ([QueryEvent(A.fingerprint, Action.TRUNCATE, b"TRUNCATE a", 5, 7, A.fingerprint)], {}, [1, 2]),
        ([rows(), OversizedRow(A.fingerprint, Action.INSERT, 1, 5, 7, 9)], {}, [1, 2]),
        ([Skipped(), rows()], {}, [1, 2]),
        ([SnapshotEvent(A.fingerprint, 0, rows().rows, 1)], {}, [1, 2]),
    ],
)
def test_what_compiled_code_leaves_takes_the_python_path(
    content: Sequence[Event], publisher: dict[str, Any], left: list[int]
) -> None:
    """The transaction after it takes the fast path again, unless no rows of the table do."""
    entry = [*transaction(2, *content), *transaction(3, rows())]
    assert left_to_python(publisher, entry, partitions=3) == left


def with_metadata(**options: object) -> dict[str, Any]:
    return _DEBEZIUM | {"options": _DEBEZIUM["options"] | _METADATA | options}


def frames_of(publisher: dict[str, Any], *entries: Sequence[Event]) -> list[tuple[str, int | None, bytes]]:
    """Return status, number of rows and sequence of each BEGIN and END."""
    outcome = outcome_of(stream_of(*entries), {"publisher": publisher}, Broker(), pure=False)
    frames = [
        (msgspec.json.decode(value), dict(headers)) for _, value, headers, _ in outcome.records["shop.transaction", 0]
    ]
    return [(frame["status"], frame["event_count"], headers[SEQUENCE_HEADER]) for frame, headers in frames]


_TWO_OF_A, _ONE_OF_B = rows("insert", [b"1", b"x"], [b"2", b"x"]), msgspec.structs.replace(rows(table=B), row=2)
_DELETED = msgspec.structs.replace(rows("delete"), row=3)
_B_ELSEWHERE = {"routes": [{"match": ["s.b"]}, {"match": ["*.*"], **with_metadata()}]}


@pytest.mark.parametrize(
    ("publisher", "frames"),
    [
        (with_metadata(), [("BEGIN", None, 0), ("END", 4, 4)]),
        (with_metadata(skipped_operations=["d"]), [("BEGIN", None, 0), ("END", 3, 4)]),
        (with_metadata(skipped_operations=["c", "d"]), []),
        (_B_ELSEWHERE, [("BEGIN", None, 0), ("END", 3, 4)]),
    ],
)
def test_the_frames_of_transaction_metadata_are_around_all_rows_that_are_published(
    publisher: dict[str, Any], frames: list[tuple[str, int | None, int]]
) -> None:
    entries = transaction(2, rows(table=B)), transaction(3, _TWO_OF_A, _ONE_OF_B, _DELETED)
    assert left_to_python(publisher, *entries) == [1, 2]
    found = [frame for frame in frames_of(publisher, *entries) if frame[2].startswith(sequence_text(3, 0)[:16])]
    assert found == [(status, count, sequence_text(3, row)) for status, count, row in frames]


def test_the_last_rows_of_a_transaction_may_be_those_of_another_output() -> None:
    entries = transaction(2, rows(table=B)), transaction(3, _TWO_OF_A, _ONE_OF_B)
    assert left_to_python(_B_ELSEWHERE, *entries) == [1, 2]
    assert frames_of(_B_ELSEWHERE, *entries)[-1] == ("END", 2, sequence_text(3, 3))


def test_transaction_metadata_has_the_order_of_rows_in_the_transaction_and_in_their_table() -> None:
    entries = transaction(2, rows(table=B)), transaction(3, _TWO_OF_A, _ONE_OF_B, _DELETED)
    stream = stream_of(*entries)
    outcome = outcome_of(stream, {"publisher": with_metadata(tombstones_on_delete=False)}, Broker(), pure=False)
    *_, (_, value, *_) = outcome.records["shop.s.a", 0]
    order = msgspec.json.decode(value)["transaction"]
    assert (order["total_order"], order["data_collection_order"]) == (4, 3)


def in_one_entry(changes: Sequence[RowsEvent]) -> list[Event]:
    """Return the events of transactions with a change each; the first is number 2."""
    return [event for number, change in enumerate(changes, 2) for event in transaction(number, change)]


@pytest.mark.parametrize("publisher", [{}, _DEBEZIUM, {"format": "maxwell-json"}, {"format": "canal-json"}])
def test_compiled_code_goes_on_after_batches_that_are_full(publisher: dict[str, Any]) -> None:
    entry = in_one_entry([rows("insert", [b"%d" % n, b"x" * 100 * (n % 25)]) for n in range(1, 60)])
    assert left_to_python(publisher | _BY_KEY, entry, partitions=3) == [1]


def test_compiled_code_goes_on_after_full_batches_of_the_transactions_topic() -> None:
    """The rows of three partitions, with tombstones, need less room in each than the frames."""
    entry = in_one_entry([rows("delete" if n % 2 else "insert", [b"%d" % n, b"x"]) for n in range(2, 82)])
    assert left_to_python(with_metadata() | _BY_KEY, entry, partitions=3) == [1]


def test_a_transaction_is_left_to_python_if_its_batch_would_be_sent_less_than_half_full() -> None:
    small, large = rows("insert", [b"1", b"x" * 1500]), rows("insert", [b"2", b"x" * 6000])
    assert left_to_python({}, in_one_entry([small, large, small])) == [1, 3]


def test_a_transaction_of_two_entries_takes_the_python_path() -> None:
    begin, *rest = transaction(2, rows())
    assert left_to_python({}, [begin], rest, transaction(3, rows())) == [1, 2]


#: streams of each case
EXAMPLES = 10
