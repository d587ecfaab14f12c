"""Records are printed as lines; `KeyValueRecords` holds records as two lists."""

import pytest

from databus_messages.formats.base import KeyValueRecords, Record
from databus_messages.record_lines import line_of


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b'{"a":\n 1}', '{"a":1}'),
        (b'"\xff"', '{"base64":"Iv8i"}'),
        (b"a\nb", '{"base64":"YQpi"}'),
        (b"words", '"words"'),
        (None, "null"),
    ],
)
def test_a_record_is_printed_as_one_line_of_json_whatever_its_value_contains(value: bytes | None, shown: str) -> None:
    assert line_of(Record(b"1", value)).decode() == f'{{"key":1,"value":{shown}}}\n'


def test_key_value_records_are_a_sequence_of_records() -> None:
    records = KeyValueRecords([b"k", None, b"l"], [b"v", b"w", None])
    expected = [Record(b"k", b"v"), Record(None, b"w"), Record(b"l", None)]
    assert (list(records), records[1], len(records)) == (expected, expected[1], 3)
