"""The records of the schema history; and the pattern of table topics, which does not match our internal topics."""

import re

import pytest

from databus_core import names
from databus_core.errors import SchemaHistoryCorrupt
from databus_core.events import Column, Table
from databus_core.kafka_history import HEAD, decode_history, encode_charset, encode_table

TABLE = Table(
    schema="a.b",
    name="c",
    columns=(Column(name="id", type="int", raw_type="int(11)"),),
    primary_key=(0,),
    charset="gbk",
)


def test_encoded_records_are_decoded_to_the_same_history() -> None:
    history = decode_history(
        [
            (names.schema_key("a.b", "c"), encode_table(TABLE)),
            (names.schema_key("a.b"), encode_charset("latin1")),
            (names.schema_key(), HEAD),
        ]
    )
    assert (history.tables, history.charsets, history.complete) == ({("a.b", "c"): TABLE}, {"a.b": "latin1"}, True)
    assert not decode_history([]).complete


def test_tables_with_dots_in_their_names_have_different_keys() -> None:
    assert names.schema_key("a.b", "c") != names.schema_key("a", "b.c")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (names.schema_key("a", "b"), encode_table(TABLE)[:-1]),
        (names.schema_key("a", "b"), b'{"schema": "a"}'),
        (names.schema_key("a"), b"latin1"),
        (names.schema_key("a"), b'"\xff"'),
        (b'["\xff"]', b'"latin1"'),
        (b"a.b", encode_table(TABLE)),
        (b'["a", "b", "c"]', encode_table(TABLE)),
    ],
)
def test_t30_a_record_that_cannot_be_read_is_an_error(key: bytes, value: bytes) -> None:
    with pytest.raises(SchemaHistoryCorrupt):
        decode_history([(key, value)])


def test_the_pattern_of_table_topics_does_not_match_our_internal_topics() -> None:
    pattern = re.compile(names.table_topics([("{name}.{schema}.{table}", False)], "databus", ["*.*"]))
    assert pattern.fullmatch("databus.shop.t")
    assert not pattern.fullmatch(names.schema_topic("p"))
    assert not pattern.fullmatch(names.progress_topic("p"))
