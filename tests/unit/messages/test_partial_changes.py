"""Changes whose rows lack values, beyond what tests/cases/noblob*.sql shows of them on servers."""

from collections.abc import Sequence
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest
from msgspec.structs import replace

from databus_binlog import ABSENT, Value
from databus_core.errors import PoisonError
from databus_core.events import Action, Begin, Column, Commit, RowsEvent, Table, TableDefinition
from databus_core.settings import Publisher
from databus_messages.encoder import EventEncoder
from databus_messages.formats import canal_protocol_pb2 as pb
from databus_messages.formats.base import Change, MessageSource
from databus_messages.message import Message
from databus_messages.outputs import Output, plan_outputs
from databus_messages.transaction_buffer import TransactionBuffer

TABLE = Table(
    schema="shop",
    name="t",
    columns=(
        Column(name="b", type="text", raw_type="text", nullable=True, charset="utf8mb4"),
        Column(name="id", type="int", raw_type="int"),
        Column(name="c", type="blob", raw_type="blob", nullable=True),
        Column(name="j", type="longtext", raw_type="longtext", nullable=True, charset="utf8mb4", declared="JSON"),
    ),
    primary_key=(1,),
)
BEGIN = Begin(1, "", "log.1", 1, 7, 1_700_000_000_000_000)
UPDATE: list[list[Value]] = [[ABSENT, b"1", ABSENT, ABSENT], [b"new", b"1", ABSENT, None]]


def messages(
    images: Sequence[list[Value]] = UPDATE, action: Action = Action.UPDATE, *, partial: bool = True, **rule: Any
) -> list[Message]:
    rules = Publisher.model_validate({"routes": [{"match": ["*.*"], "topic": "t"} | rule]}).rules
    encoder = EventEncoder(rules, plan_outputs(rules), MessageSource("p", "mysql", "", 0), {"t": 1})
    packed = msgspec.Raw(msgspec.msgpack.encode(images))
    event = RowsEvent(TABLE.fingerprint, action, 5, 4, 99, packed, partial=partial)
    commit = Commit("", "log.1", 120, None)
    return [message for each in (TableDefinition(TABLE), BEGIN, event, commit) for message in encoder.messages(each)]


def change_of(image: Message) -> Change:
    assert isinstance(image.content, Change)
    return image.content


def values(**rule: Any) -> list[Any]:
    return [msgspec.json.decode(record.value) for message in messages(**rule) for record in message.encode()]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {"b": "__debezium_unavailable_value", "c": "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="}),
        ({"unavailable_value_placeholder": "é", "binary": "hex"}, {"b": "é", "c": "c3a9"}),
        ({"unavailable_value_placeholder": "-", "binary": "base64"}, {"b": "-", "c": "LQ=="}),
    ],
)
def test_debeziums_placeholder_is_written_like_a_value_of_its_column(
    options: dict[str, str], expected: dict[str, str]
) -> None:
    [value] = values(format="debezium-json", options={"schemas_enable": False, **options})
    assert value["before"] == {"id": 1, "j": expected["b"], **expected}
    assert value["after"] == {"id": 1, "b": "new", "j": None, "c": expected["c"]}


def test_canals_entries_lack_the_columns_and_the_others_keep_their_index_and_count_as_updated() -> None:
    rows = messages(format="canal-protobuf")[1].encode()[0]
    [entry] = pb.Messages.FromString(pb.Packet.FromString(rows.value).body).messages
    [data] = pb.RowChange.FromString(pb.Entry.FromString(entry).storeValue).rowDatas
    assert [(c.index, c.name, c.value) for c in data.beforeColumns] == [(1, "id", "1")]
    after = [(c.index, c.name, c.value, c.isNull, c.updated) for c in data.afterColumns]
    assert after == [(0, "b", "new", False, True), (1, "id", "1", False, False), (3, "j", "", True, True)]


def test_maxwell_keeps_the_key_and_claims_no_old_value_that_it_does_not_know() -> None:
    [record] = messages(format="maxwell-json", options={"output_primary_keys": True})[0].encode()
    value = msgspec.json.decode(record.value or b"")
    assert (value["data"], value["primary_key"]) == ({"b": "new", "id": 1, "j": None}, [1])
    assert "old" not in value
    [message] = messages(UPDATE[:1], Action.DELETE, format="maxwell-json", options={"output_primary_keys": True})
    [record] = message.encode()
    value = msgspec.json.decode(record.value or b"")
    assert (record.key, value["data"]) == (b'{"database":"shop","table":"t","pk.id":1}', {"id": 1})


def test_a_hashed_value_that_is_absent_stays_absent() -> None:
    [value] = values(format="databus", truncate={"b": 1}, mask=["c"])
    assert value["Rows"] == [[False, "MQ==", False, False], ["bg==", "MQ==", False, None]]


def test_columns_that_are_left_out_do_not_make_a_change_partial() -> None:
    [message] = messages(format="dip", columns={"exclude": ["b", "c", "j"]})
    assert not change_of(message).partial
    assert message.encode()


def test_a_condition_on_an_absent_value_is_undecided_unless_another_condition_excludes_the_row() -> None:
    on_text = {"column": "b", "is_null": True}
    [message] = messages(format="databus", where=[on_text])
    with pytest.raises(PoisonError, match="the binlog lacks the value of b, on which a rule has a condition"):
        message.encode()
    assert not messages(format="databus", where=[on_text, {"column": "id", "equals": 2}])


def test_rows_that_are_undecided_are_refused_alone() -> None:
    where = [{"column": "c", "equals": "x"}, {"column": "id", "not_in": [2]}]
    images: list[list[Value]] = [[b"", b"%d" % number, ABSENT, b""] for number in (1, 2, 3)]
    [message] = messages(images, Action.DELETE, format="databus", where=where)
    assert list(change_of(message).ordinals) == [5, 7]
    halves = message.halves()
    assert halves
    assert all(change_of(half).refusal for half in halves)


def test_the_buffer_keeps_what_is_known_of_partial_changes() -> None:
    buffer, output = TransactionBuffer(), Mock(spec_set=Output)
    [message] = messages(format="databus")
    refused = replace(change_of(message), refusal="why")
    buffer.add([replace(message, output=output), replace(message, output=output, content=refused)], 2**21)
    released = [change_of(each) for each in buffer.release(BEGIN)]
    assert [(each.partial, each.refusal, list(each.rows)) for each in released] == [
        (True, "", UPDATE), (True, "why", UPDATE)
    ]  # fmt: skip
