"""The headers and keys of dead letters."""

import pytest

from databus_core.dead_letters import DeadLetter, read_headers
from databus_core.errors import PoisonError

LETTER = DeadLetter(
    reason="too_large",
    error="insert of shop.größe at log.1:4 takes 2000000 bytes",
    topic="p.shop.gr__e",
    partition=3,
    key=b"\x00\xff",
    record_headers=(("key", b"\x00\xff"), ("größe", b""), ("key", b"2")),
    schema="shop",
    table="größe",
    action="insert",
    gtid="0-1-7",
    file="log.1",
    start=4,
    end=2**33,
    transaction=12,
    row=5,
    size=2_000_000,
    time=1_700_000_000_000_000,
)


def test_a_dead_letter_is_read_from_its_headers() -> None:
    assert read_headers(LETTER.headers()) == LETTER
    headers = dict(LETTER.headers())
    assert headers.keys() >= {"error", "topic", "partition", "key", "schema", "table", "action", "gtid", "file"}
    assert (headers["bytes"], headers["row"], headers["key"]) == (b"2000000", b"5", b"\x00\xff")


def test_the_headers_of_the_record_are_beside_those_of_the_letter() -> None:
    headers = LETTER.headers()
    assert headers[-3:] == [("record.key", b"\x00\xff"), ("record.größe", b""), ("record.key", b"2")]
    assert [name for name, _ in headers].count("key") == 1


def test_the_key_contains_what_distinguishes_the_dead_letters_of_one_event() -> None:
    assert LETTER.id == '[12,4,5,"insert","shop.größe",3,"p.shop.gr__e",0]'.encode()


@pytest.mark.parametrize(
    "headers",
    [
        [],
        LETTER.headers()[1:],
        [*LETTER.headers(), ("row", b"x"), ("gtid", b"\xff")],
        [*LETTER.headers(), ("gtid", None)],
    ],
)
def test_headers_that_are_missing_or_invalid_are_refused(headers: list[tuple[str, bytes | None]]) -> None:
    with pytest.raises(PoisonError, match="cannot be read"):
        read_headers(headers)
