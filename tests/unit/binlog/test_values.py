"""Column values are decoded from their bytes to the server's text; for JSON, see test_json.py."""

import math
import struct

import msgspec
import pytest

from databus_binlog import CorruptEvent, MissingMetadata, TableMap, UnsupportedColumn, float_text

SIGNED, UNSIGNED = "010100", "010180"
LATIN1, UTF8MB4, BINARY = "020108", "02012d", "02013f"


@pytest.mark.parametrize(
    ("code", "value", "signed", "unsigned"),
    [
        ("01", "80", b"-128", b"128"),
        ("01", "ff", b"-1", b"255"),
        ("02", "0080", b"-32768", b"32768"),
        ("09", "000080", b"-8388608", b"8388608"),
        ("09", "ffffff", b"-1", b"16777215"),
        ("03", "00000080", b"-2147483648", b"2147483648"),
        ("08", "0000000000000080", b"-9223372036854775808", b"9223372036854775808"),
        ("08", "ffffffffffffffff", b"-1", b"18446744073709551615"),
    ],
)
def test_an_integer_is_signed_or_unsigned_like_its_column(value_of, code, value, signed, unsigned):
    assert value_of(code, "", value, SIGNED) == signed
    assert value_of(code, "", value, UNSIGNED) == unsigned


@pytest.mark.parametrize(
    ("metadata", "value", "text"),
    [
        ("1405", "80000000000000000000", b"0.00000"),
        ("1405", "7e1dbfd0f8a086fef6cd", b"-123456789012345.67890"),
        ("0300", "7c18", b"-999"),
        ("0202", "1c", b"-0.99"),
        (
            "411e",
            "7f439eb1ca484078caf1cb3fd0f8a086f8a432eaff439eb1ca484078fc84",
            b"-12345678901234567890123456789012345.123456789012345678901234567891",
        ),
    ],
)
def test_decimals_keep_their_scale(value_of, metadata, value, text):
    assert value_of("f6", metadata, value, SIGNED) == text


@pytest.mark.parametrize(
    ("code", "metadata", "value", "text"),
    [
        ("13", "00", "b46efb", b"838:59:59"),
        ("13", "00", "4b9105", b"-838:59:59"),
        ("13", "00", "7f0efb", b"-15:04:05"),
        ("13", "00", "800000", b"00:00:00"),
        ("13", "02", "7fffffff", b"-00:00:00.01"),
        ("13", "02", "7f0efaf4", b"-15:04:05.12"),
        ("13", "04", "7fffffffff", b"-00:00:00.0001"),
        ("13", "06", "4b9105fe1dc0", b"-838:59:58.123456"),
        ("13", "06", "800000000001", b"00:00:00.000001"),
        ("12", "00", "fef3ff7efb", b"9999-12-31 23:59:59"),
        ("12", "00", "9902c20000", b"1970-01-01 00:00:00"),
        ("12", "02", "800382 0000 0c", b"0001-01-01 00:00:00.12"),
        ("12", "06", "99a840000007a120", b"2021-00-00 00:00:00.500000"),
        ("12", "00", "8000000000", b"0000-00-00 00:00:00"),
        ("11", "00", "7fffffff", b"2038-01-19 03:14:07"),
        ("11", "00", "ffffffff", b"2106-02-07 06:28:15"),
        ("11", "02", "3a7b83724e", b"2001-02-03 04:05:06.78"),
        ("11", "03", "000000000000", b"0000-00-00 00:00:00.000"),
        ("0a", "", "9f1f4e", b"9999-12-31"),
        ("0a", "", "000000", b"0000-00-00"),
        ("0d", "", "ff", b"2155"),
        ("0d", "", "00", b"0000"),
    ],
)
def test_dates_and_times_have_the_fraction_digits_of_their_column(value_of, code, metadata, value, text):
    assert value_of(code, metadata, value) == text


@pytest.mark.parametrize(
    ("code", "metadata", "value", "extra", "text"),
    [
        ("10", "0101", "0101", "", b"257"),
        ("10", "0008", "8000000000000001", "", b"9223372036854775809"),
        ("fe", "f701", "03", "", b"3"),
        ("fe", "f802", "0102", "", b"513"),
        ("0f", "0a00", "02 68e9", LATIN1, "hé".encode()),
        ("0f", "0a00", "03 80818d", LATIN1, "\u20ac\x81\x8d".encode()),
        ("0f", "2c01", "0300 68c3a9", UTF8MB4, "hé".encode()),
        ("0f", "0a00", "02 c4e3", "02011c", "你".encode()),
        ("0f", "2c01", "0200 00ff", BINARY, b"\x00\xff"),
        ("fe", "ee90", "0300 616263", UTF8MB4, b"abc"),
        ("fe", "fe05", "02 0102", BINARY, b"\x01\x02\x00\x00\x00"),
        ("fe", "fe10", "0e 123e4567e89b12d3a45642665544", BINARY, bytes.fromhex("123e4567e89b12d3a456426655440000")),
        ("fc", "02", "0300 616263", LATIN1, b"abc"),
        ("fc", "03", "040000 deadbeef", BINARY, b"\xde\xad\xbe\xef"),
        ("fc", "01", "00", BINARY, b""),
        (
            "ff",
            "04",
            "19000000 e6100000 0101000000 000000000000f03f 0000000000000040",
            "",
            bytes.fromhex("e61000000101000000000000000000f03f0000000000000040"),
        ),
        ("f2", "04", "08000000 0000803f 000000c0", "", struct.pack("<2f", 1, -2)),
    ],
)
def test_bits_enums_sets_text_and_bytes_are_decoded(wire, decode, code, metadata, value, extra, text):
    collations = {8: "latin1", 45: "utf8mb4", 63: "binary", 28: "gbk"}
    [rows] = decode(wire.table(code, metadata, extra), wire.inserted("00" + value), collations=collations)
    assert rows.images() == [[text]]


def test_floats_have_the_shortest_text_that_the_server_prints(value_of):
    assert value_of("04", "04", "0000c0bf", SIGNED) == b"-1.5"
    assert value_of("05", "08", "182d4454fb210940", SIGNED) == b"3.141592653589793"
    assert value_of("04", "04", struct.pack("<f", 9204.266).hex(), SIGNED) == b"9204.266"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, b"0"),
        (-0.0, b"-0"),
        (1.0, b"1"),
        (0.1 + 0.2, b"0.30000000000000004"),
        (-123.25, b"-123.25"),
        (1e14, b"100000000000000"),
        (1e15, b"1e15"),
        (1e20, b"1e20"),
        (1.5e300, b"1.5e300"),
        (1e-5, b"0.00001"),
        (1e-15, b"0.000000000000001"),
        (1e-16, b"1e-16"),
        (5e-324, b"5e-324"),
        (123456789012345.6, b"123456789012345.6"),
        (1234567890123456.0, b"1.234567890123456e15"),
    ],
)
def test_a_double_has_the_text_that_the_server_prints(value, text):
    assert float_text(value) == text
    assert math.copysign(1, float(text)) == math.copysign(1, value)
    assert float(text) == value


def test_a_float_has_fewer_digits_than_the_same_number_as_a_double():
    assert float_text(struct.unpack("<f", struct.pack("<f", 0.1))[0], single=True) == b"0.1"
    assert float_text(3.4028234663852886e38, single=True) == b"3.4028235e38"


def test_null_and_an_empty_string_are_different(wire, decode):
    [rows] = decode(wire.table("0f0f", "0a000a00", UTF8MB4, columns=2), wire.inserted("fd 00", columns=2))
    assert rows.images() == [[None, b""]]


def test_a_sign_or_character_set_that_is_not_logged_is_an_error(value_of):
    with pytest.raises(MissingMetadata, match=r"column 0 of lab.t: whether it is unsigned .* binlog_row_metadata=FULL"):
        value_of("03", "", "01000000")
    with pytest.raises(MissingMetadata, match="its character set is not logged"):
        value_of("0f", "0a00", "0161")


@pytest.mark.parametrize(
    ("code", "metadata", "extra", "message"),
    [
        ("14", "", "", r"type 20 \(TYPED_ARRAY\)"),
        ("0f", "0a00", "0203fc8813", "character set collation 5000"),
        ("12", "07", "", "7 fractional digits of a second"),
    ],
)
def test_a_column_that_cannot_be_decoded_is_an_error(value_of, code, metadata, extra, message):
    with pytest.raises(UnsupportedColumn, match=message):
        value_of(code, metadata, "00" * 9, extra)


@pytest.mark.parametrize(
    ("code", "value", "text"),
    [
        ("0b", "25d8ff", b"-01:02:03"),
        ("0b", "a7f57f", b"838:59:59"),
        ("0c", "fa1af98d61120000", b"2021-02-03 04:05:06"),
        ("0c", "0000000000000000", b"0000-00-00 00:00:00"),
        ("07", "f2201a60", b"2021-02-03 04:05:06"),
        ("07", "00000000", b"0000-00-00 00:00:00"),
    ],
)
def test_dates_and_times_in_the_format_before_mysql_5_6_are_decoded(value_of, code, value, text):
    assert value_of(code, "", value) == text


@pytest.mark.parametrize(
    ("code", "digits", "value", "text"),
    [
        ("0b", 3, "00b3ced4c0", b"-01:02:03.456"),
        ("0c", 6, "01021699d261ea94", b"2021-02-03 04:05:06.789012"),
        ("07", 3, "601a20f20315", b"2021-02-03 04:05:06.789"),
    ],
)
def test_fractions_in_mariadbs_old_format_need_the_number_of_digits_from_describe(
    wire, decode, code, digits, value, text
):
    def describe(table: TableMap) -> TableMap:
        [column] = table.columns
        return msgspec.structs.replace(table, columns=(msgspec.structs.replace(column, metadata=digits),))

    inserted = wire.table(code), wire.inserted("00" + value)
    [rows] = decode(*inserted, mariadb=True, describe=describe)
    assert rows.images() == [[text]]
    with pytest.raises(MissingMetadata, match="fractional digits is not logged"):
        decode(*inserted, mariadb=True)


@pytest.mark.parametrize(
    ("code", "metadata", "value", "text"),
    [
        ("8d", "e903", "0b00 8a01f44b4c1c05230d0000", b"a" * 500),
        ("8d", "6500", "06 00 73686f7274", b"short"),
        ("8c", "02", "0e00 8a03e84b4a1a05a360140c770000", b"b" * 1000),
        ("8c", "03", "080000 89c84b4e1e1e0000", b"c" * 200),
        ("8c", "01", "00", b""),
    ],
)
def test_mariadbs_compressed_columns_are_inflated(value_of, code, metadata, value, text):
    assert value_of(code, metadata, value, "02013f") == text


@pytest.mark.parametrize("value", ["02 8a01", "05 8affffffff", "06 8901f44b4c1c", "03 870000"])
def test_a_compressed_value_that_cannot_be_inflated_is_an_error(value_of, value):
    with pytest.raises(CorruptEvent, match=r"column 0 of lab\.t .*inflated"):
        value_of("8d", "6500", value, "02013f")
