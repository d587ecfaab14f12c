"""The records of backfills and tables in doubt."""

import pytest

from databus_core.errors import TableStatesCorrupt
from databus_core.skips import Skip
from databus_core.table_states import (
    CAPTURED_KEY,
    Backfill,
    BackfillProgress,
    TableDoubt,
    backfill_key,
    decode_states,
    doubt_key,
    encode,
    is_request,
    progress_key,
)

FIRST, SECOND = Backfill(id="1", schema="a.b", table="c", where="id > 3"), Backfill(id="2", schema="a", table="b.c")
DOUBT = TableDoubt(state="parked", reason="rollback", text="ROLLBACK", file="bin.000001", offset=4, since_us=5)


def test_what_was_reached_of_a_request_decides_whether_it_is_unfinished() -> None:
    loaded = BackfillProgress(state="running", last_key=(b"\xff", b""), rows=2)
    records: list[tuple[bytes, bytes | None]] = [
        (backfill_key("2"), encode(SECOND)),
        (backfill_key("1"), encode(FIRST)),
        (progress_key("1"), encode(loaded)),
    ]
    states = decode_states(records)
    assert states.unfinished() == [FIRST, SECOND]
    assert (states.state("1"), states.state("2"), states.progress) == ("running", "waiting", {"1": loaded})

    states.apply(progress_key("1"), encode(BackfillProgress(state="done", rows=2)))
    assert states.unfinished() == [SECOND]


def test_a_record_without_value_ends_a_doubt() -> None:
    states = decode_states([(doubt_key("a.b", "c"), encode(DOUBT)), (CAPTURED_KEY, encode((["a.*"], [])))])
    assert (states.doubts, states.captured) == ({("a.b", "c"): DOUBT}, (["a.*"], []))
    states.apply(doubt_key("a.b", "c"), None)
    assert not states.doubts


def test_a_transaction_is_skipped_until_the_request_is_deleted() -> None:
    skip = Skip(gtid="0-1-9", server="1", file="bin.000001", offset=4, requested_us=5)
    states = decode_states([(skip.key, encode(skip))])
    assert (states.skips, is_request(skip.key)) == ({"0-1-9": skip}, True)
    states.apply(skip.key, None)
    assert not states.skips


@pytest.mark.parametrize(
    ("gtid", "is_skipped"),
    [("", {("", "1", 4): True, ("x:1", "1", 4): True, ("", "2", 4): False, ("", "1", 5): False}),
     ("x:1", {("x:1", "2", 5): True, ("x:2", "1", 4): False, ("", "1", 4): False})],
)  # fmt: skip
def test_a_request_names_one_transaction(gtid: str, is_skipped: dict[tuple[str, str, int], bool]) -> None:
    skip = Skip(gtid=gtid, server="1", file="bin.000001", offset=4, requested_us=5)
    found = {
        (each, server, offset): skip.is_of(each, server, ("bin.000001", offset)) for each, server, offset in is_skipped
    }
    assert found == is_skipped


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (backfill_key("1"), b"{}"),
        (doubt_key("a", "b"), encode(DOUBT)[:-1]),
        (b'["other"]', b"1"),
        (b"\xff", b"1"),
    ],
)
def test_a_record_that_cannot_be_read_is_never_ignored(key: bytes, value: bytes) -> None:
    with pytest.raises(TableStatesCorrupt, match="run `databus pipeline reset"):
        decode_states([(key, value)])
