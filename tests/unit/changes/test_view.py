"""Whether a MariaDB read view contains everything that is in the binlog."""

import pytest

from databus_binlog import Position
from databus_changes.snapshot.view import includes


@pytest.mark.parametrize(
    ("view", "end", "complete"),
    [
        (Position("0-1-9", "log.000001", 900), Position("0-1-9", "log.000001", 900), True),
        (Position("0-1-8", "log.000001", 800), Position("0-1-9", "log.000001", 900), False),
        (Position("0-1-9,1-1-2", "log.000001", 900), Position("1-1-2,0-1-9", "log.000002", 300), True),
    ],
)
def test_a_view_behind_the_end_of_the_binlog_is_complete_only_with_the_same_gtids(
    view: Position, end: Position, complete: bool
) -> None:
    assert includes(view, end) is complete


# T19: binlog file names get longer after .999999, and offsets need more than 32 bits
@pytest.mark.parametrize(
    ("view", "end", "complete"),
    [
        (Position("0-1-9", "log.999999", 900), Position("0-1-10", "log.1000000", 4), False),
        (Position("0-1-10", "log.1000000", 4), Position("0-1-9", "log.999999", 900), True),
        (Position("0-1-9", "zzz.000009", 900), Position("0-1-10", "log.000010", 4), False),
        (Position("0-1-9", "log.000001", 1 << 32), Position("0-1-10", "log.000001", (1 << 32) + 900), False),
    ],
)
def test_t19_files_are_compared_by_number_and_offsets_with_64_bits(
    view: Position, end: Position, complete: bool
) -> None:
    assert includes(view, end) is complete
