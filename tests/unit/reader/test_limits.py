"""What bounds backfills, besides rows per second and replicas: the size of chunks, and what waits to be published."""

import pytest

from unit.reader.backfilled import EmptyPipe, limits_of, settings


@pytest.mark.parametrize(("rows_per_second", "rows"), [(100, 25), (1, 1)])
def test_a_chunk_has_at_most_a_quarter_of_a_second_s_rows(rows_per_second: int, rows: int) -> None:
    assert limits_of(settings(backfill={"rows_per_second": rows_per_second})).chunk_rows == rows


def test_without_a_limit_a_chunk_has_any_number_of_rows() -> None:
    assert limits_of(settings()).chunk_rows > 10**9


async def test_no_chunk_is_read_while_much_waits_to_be_published(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = [2**20, 2**16 + 1, 2**16]

    async def backlog(_: EmptyPipe) -> int:
        return waiting.pop(0)

    monkeypatch.setattr(EmptyPipe, "backlog", backlog)
    await limits_of(settings()).wait()
    assert not waiting
