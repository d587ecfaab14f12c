"""Which views of MariaDB have everything that its log has."""

import pytest

from databus_binlog import Position
from databus_dump_api.view import has


@pytest.mark.parametrize(
    ("view", "end", "whole"),
    [
        (Position("0-1-9", "log.000001", 900), Position("0-1-9", "log.000001", 900), True),
        (Position("0-1-8", "log.000001", 800), Position("0-1-9", "log.000001", 900), False),
        (Position("0-1-9,1-1-2", "log.000001", 900), Position("1-1-2,0-1-9", "log.000002", 300), True),
    ],
)
def test_a_view_behind_the_log_lacks_something_unless_only_the_file_is_another(
    view: Position, end: Position, whole: bool
) -> None:
    assert has(view, end) is whole


# T19: files roll over to longer names, positions need more than 32 bits
@pytest.mark.parametrize(
    ("view", "end", "whole"),
    [
        (Position("0-1-9", "log.999999", 900), Position("0-1-10", "log.1000000", 4), False),
        (Position("0-1-10", "log.1000000", 4), Position("0-1-9", "log.999999", 900), True),
        (Position("0-1-9", "zzz.000009", 900), Position("0-1-10", "log.000010", 4), False),
        (Position("0-1-9", "log.000001", 1 << 32), Position("0-1-10", "log.000001", (1 << 32) + 900), False),
    ],
)
def test_t19_files_count_by_their_number_and_offsets_have_64_bits(view: Position, end: Position, whole: bool) -> None:
    assert has(view, end) is whole
