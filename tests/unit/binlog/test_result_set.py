"""The answer to a SELECT, read from packets: complete rows, or an error that says what is wrong."""

import random
from collections.abc import Callable, Sequence

import msgspec
import pytest

from databus_binlog.errors import CorruptResult
from databus_binlog.number_text import float_text
from databus_binlog.result_set import ResultSet
from databus_binlog.row_batch import Conversion
from unit.binlog.result_sets import DEFINITION, OK, answer, head, lenenc, packets, row

Row = list[bytes | None]
BOTH_ENDS = pytest.mark.parametrize("deprecate_eof", [False, True])
ROWS: list[Row] = [
    [b"1", b"", None],
    [None, None, None],
    [b"x" * 250, b"y" * 251, b"z" * 65536],
    [b"4", b"\xfe", b"\0"],
]


def rows_of(*batches: bytes) -> list[Row]:
    return [found for batch in batches for found in msgspec.msgpack.decode(batch, type=list[Row])]


def read(
    data: bytes, conversions: Sequence[Conversion] = (), *, deprecate_eof: bool = False, batch: int = 1 << 16
) -> list[Row]:
    result = ResultSet(conversions, batch=batch, deprecate_eof=deprecate_eof)
    batches = result.feed(data)
    assert result.complete
    return rows_of(*(found.rows for found in batches))


@BOTH_ENDS
def test_rows_are_packed_whatever_their_sizes_and_nulls(deprecate_eof: bool) -> None:
    data = answer(3, [row(*cells) for cells in ROWS], deprecate_eof=deprecate_eof)
    assert read(data, deprecate_eof=deprecate_eof) == ROWS
    assert read(answer(3, [], deprecate_eof=deprecate_eof), deprecate_eof=deprecate_eof) == []
    many: Row = [b"%d" % number for number in range(4096)]
    assert read(answer(4096, [row(*many)], deprecate_eof=deprecate_eof), deprecate_eof=deprecate_eof) == [many]


@BOTH_ENDS
def test_any_cut_of_the_bytes_gives_the_same_rows(deprecate_eof: bool, cuts: Callable[[int], Sequence[int]]) -> None:
    data = answer(3, [row(*cells) for cells in ROWS], deprecate_eof=deprecate_eof)
    for cut in cuts(len(data)):
        result = ResultSet(batch=1, deprecate_eof=deprecate_eof)
        batches = result.feed(data[:cut])
        assert not result.complete
        batches += result.feed(data[cut:])
        assert result.complete
        assert rows_of(*(batch.rows for batch in batches)) == ROWS


@pytest.mark.parametrize("size", [0xFFFFFF - 10, 0xFFFFFF - 9, 0xFFFFFF, 20_000_000])
@BOTH_ENDS
def test_a_row_of_16_mib_or_more_continues_in_the_next_packet(deprecate_eof: bool, size: int) -> None:
    data = answer(2, [row(b"x" * size, b"1"), row(b"2", None)], deprecate_eof=deprecate_eof)
    result = ResultSet(batch=1 << 16, deprecate_eof=deprecate_eof)
    batches = [batch for at in range(0, len(data), 1 << 18) for batch in result.feed(data[at : at + (1 << 18)])]
    assert result.complete
    assert rows_of(*(batch.rows for batch in batches)) == [[b"x" * size, b"1"], [b"2", None]]


def test_a_batch_ends_at_its_size_and_counts_rows_and_cell_data() -> None:
    result = ResultSet(batch=1000, deprecate_eof=False)
    batches = result.feed(answer(2, [row(b"x" * 100, None)] * 25))
    assert [(batch.count, batch.size) for batch in batches] == [(10, 1000), (10, 1000), (5, 500)]
    assert rows_of(*(batch.rows for batch in batches)) == [[b"x" * 100, None]] * 25


def test_rows_of_nulls_end_a_batch_too() -> None:
    result = ResultSet(batch=1000, deprecate_eof=False)
    assert len(result.feed(answer(1, [row(None)] * 5000))) > 5


def test_numbers_become_the_decoders_text() -> None:
    conversions = [Conversion.FLOAT, Conversion.DOUBLE, Conversion.YEAR2, Conversion.NONE]
    data = answer(4, [row(b"1.100000023841858", b"1e20", b"05", b"1.50"), row(b"-0", b"5e-324", b"70", None)])
    assert read(data, conversions) == [[b"1.1", b"1e20", b"2005", b"1.50"], [b"-0", b"5e-324", b"1970", None]]


def test_every_double_is_converted_as_by_float_text() -> None:
    dice = random.Random(5)
    values = [dice.uniform(-10, 10) * 10.0 ** dice.randint(-300, 300) for _ in range(2000)]
    data = answer(1, [row(repr(value).encode()) for value in values])
    assert read(data, [Conversion.DOUBLE]) == [[float_text(value)] for value in values]


@pytest.mark.parametrize("text", [b"", b"nan", b"inf", b"1e999", b"1.5x", b" 1"])
def test_a_number_that_is_none_is_an_error(text: bytes) -> None:
    with pytest.raises(CorruptResult, match="a number is malformed"):
        read(answer(1, [row(text)]), [Conversion.DOUBLE])


def test_a_year_of_more_than_two_digits_is_an_error() -> None:
    with pytest.raises(CorruptResult, match="a year is malformed"):
        read(answer(1, [row(b"2005")]), [Conversion.YEAR2])


@pytest.mark.parametrize("at", [0, 1, 3, 4])
def test_the_servers_error_ends_the_rows_wherever_it_comes(at: int) -> None:
    payloads = [*head(2), row(b"1", b"2")][:at]
    result = ResultSet(batch=1, deprecate_eof=False)
    batches = result.feed(packets(*payloads, b"\xff\x25\x05#70100Query execution was interrupted"))
    assert result.complete
    assert result.refusal == (1317, "Query execution was interrupted")
    assert batches == []


def test_the_error_of_a_server_that_shuts_down_has_no_sequence_number() -> None:
    result = ResultSet(batch=1, deprecate_eof=False)
    result.feed(packets(*head(1)) + b"\x09\0\0\0\xff\x1d\x04#08S01")
    assert result.refusal == (1053, "")


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (packets(b"\0\0\0\2\0\0\0"), "returns no rows"),
        (packets(b"\xfbfile"), "returns no rows"),
        (packets(b"\xfc\0"), "cut off"),
        (packets(b"\xff\1"), "an error is cut off"),
        (packets(b"\x02\0"), "number of columns is malformed"),
        (packets(b"\xfc\0\0"), "number of columns is malformed"),
        (packets(b"\xfe" + b"\xff" * 8), "number of columns is malformed"),
        (packets(b""), "a packet is empty"),
        (packets(b"\1", DEFINITION, row(b"1")), "have no end"),
        (packets(*head(2), row(b"1")), "cut off"),
        (packets(*head(1), row(b"1", b"2")), "bytes after a row's last value"),
        (packets(*head(1), lenenc(b"12345")[:-1]), "longer than its row"),
        (packets(*head(1), b"\xfc\xff"), "cut off"),
        (packets(*head(1), b"\xfd\xff\xff\xff"), "longer than its row"),
        (packets(*head(1), b"\xfe" + b"\xff" * 8 + b"x"), "longer than its row"),
        (packets(*head(2), b"\1" + b"x" + b"\xff"), "a size is malformed"),
        (packets(*head(1), b"\xfe\0\0"), "its end is cut off"),
        (packets(*head(1), b"\xfe\0\0\x0a\0"), "more than one"),
        (answer(1, []) + b"\1\0\0\5\0", "bytes after its end"),
        (packets(*head(1)) + b"\2\0\0\7\1x", "missing or repeated"),
    ],
)
def test_damaged_packets_are_an_error_that_says_what_is_wrong(data: bytes, fault: str) -> None:
    with pytest.raises(CorruptResult, match=fault):
        ResultSet(batch=1, deprecate_eof=False).feed(data)


def test_a_result_set_must_have_a_column_for_each_conversion() -> None:
    with pytest.raises(CorruptResult, match="3 columns instead of 2"):
        ResultSet([Conversion.NONE, Conversion.NONE], batch=1, deprecate_eof=False).feed(answer(3, []))


def test_the_end_without_deprecated_eof_may_carry_a_text() -> None:
    assert read(packets(*head(1, deprecate_eof=True), row(b"1"), OK + lenenc(b"x" * 300)), deprecate_eof=True) == [
        [b"1"]
    ]
    with pytest.raises(CorruptResult, match="more than one"):
        read(packets(*head(1, deprecate_eof=True), b"\xfe\0\0\x0a\0\0\0"), deprecate_eof=True)


@BOTH_ENDS
@pytest.mark.parametrize("seed", range(20))
def test_damaged_bytes_give_rows_of_the_right_width_or_our_error(seed: int, deprecate_eof: bool) -> None:
    dice = random.Random(seed)
    intact = answer(3, [row(*cells) for cells in ROWS], deprecate_eof=deprecate_eof)
    for _ in range(200):
        data = bytearray(intact)
        for _ in range(dice.randint(1, 4)):
            at = dice.randrange(min(len(data), 1200) if dice.random() < 0.8 else len(data))
            if dice.random() < 0.3:
                del data[at : at + dice.randint(1, 9)]
            else:
                data[at] = dice.choice([0, 1, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF, dice.randrange(256)])
        conversions = dice.choice([(), (Conversion.DOUBLE, Conversion.NONE, Conversion.FLOAT)])
        result = ResultSet(conversions, batch=dice.choice([1, 100, 1 << 16]), deprecate_eof=deprecate_eof)
        size = dice.choice([1 << 20, 1000, 7])
        try:
            batches = [batch for at in range(0, len(data), size) for batch in result.feed(data[at : at + size])]
        except CorruptResult:
            continue
        found = rows_of(*(batch.rows for batch in batches))
        assert len(found) == sum(batch.count for batch in batches)
        assert {len(cells) for cells in found} <= {data[4]}
