"""A table map is parsed into the table's columns."""

import pytest

from databus_binlog import FieldType
from databus_binlog.table_map import parse_table_map

COLLATIONS = {8: "latin1", 45: "utf8mb4", 46: "utf8mb4", 63: "binary"}
NAMES = ["id", "a", "b", "f", "d", "y", "bt", "c1", "c2", "tx", "bn", "bl", "js", "e1", "s1", "g", "p", "u", "i6"]
#: number and types of the columns
TYPES = "1303010804f60d10fe0ffc0ffcfcfefefffffefe"
#: the beginning of a TABLE_MAP of lab.meta, without table id and flags: names, TYPES, metadata, null bits; then, as
#: optional metadata, signs, character sets and geometry types
META = (
    "03 6c616200 04 6d65746100" + TYPES + "18 0405020300fe0514000205000204f701f8010404fe10fe10 fefe07"
    "0101b4 0209 3f 0008 012d 0208 052e 07020001"
)


def full_metadata() -> bytes:
    names = b"".join(bytes([len(name)]) + name.encode() for name in NAMES)
    extra = "0b02082d 0505 02 0170 0171 0605 02 0178 0179 0904 0000 0803"
    return bytes.fromhex(META) + bytes([4, len(names)]) + names + bytes.fromhex(extra)


def test_a_table_map_with_full_metadata_has_every_property_of_its_columns():
    table = parse_table_map(full_metadata(), "mariadb", COLLATIONS)
    column = {column.name: column for column in table.columns}
    assert (table.schema, table.name, list(column)) == ("lab", "meta", NAMES)
    assert (table.key, table.key_has_prefix) == ((0, 8), True)
    assert table.has_names
    assert {name: c.unsigned for name, c in column.items() if c.unsigned is not None} == {
        **dict.fromkeys(["id", "b", "f", "y"], True),
        **dict.fromkeys(["a", "d"], False),
    }
    assert [column[name].charset for name in ("c1", "c2", "tx", "bn", "bl", "js", "g", "u")] == (
        ["latin1", "utf8mb4", "latin1", "binary", "binary", "utf8mb4", "binary", "binary"]
    )
    assert (column["e1"].type, column["e1"].values, column["e1"].charset) == (FieldType.ENUM, ("x", "y"), "latin1")
    assert (column["s1"].type, column["s1"].values, column["s1"].charset) == (FieldType.SET, ("p", "q"), "utf8mb4")
    assert (column["g"].geometry_type, column["p"].geometry_type) == (0, 1)
    assert (column["d"].metadata, column["bt"].metadata, column["c2"].metadata) == (5 << 8 | 2, 3, 20)


def test_the_fingerprint_changes_only_with_the_definition():
    body = full_metadata()
    altered = body[:-1] + b"\x04"
    fingerprints = [parse_table_map(each, "mariadb", COLLATIONS).fingerprint for each in (body, body, altered)]
    assert fingerprints[0] == fingerprints[1] != fingerprints[2]


def test_only_mariadb_counts_geometries_among_the_columns_with_a_character_set():
    # lab.t; GEOMETRY and VARCHAR; their metadata; nulls; default collation 63, but 45 for the first counted column
    body = bytes.fromhex("036c616200 017400 02 ff0f 03 04 0a00 00 0203 3f 00 2d")
    assert [c.charset for c in parse_table_map(body, "mysql", COLLATIONS).columns] == [None, "utf8mb4"]
    assert [c.charset for c in parse_table_map(body, "mariadb", COLLATIONS).columns] == ["utf8mb4", "binary"]


def test_unknown_optional_metadata_is_skipped():
    body = bytes.fromhex("036c616200 017400 01 03 00 01 6e 03 aabbcc 010180 0c0100")
    [column] = parse_table_map(body, "mysql", COLLATIONS).columns
    assert (column.unsigned, column.visible, column.nullable) == (True, False, True)


def test_the_length_of_a_long_char_is_combined_from_two_metadata_bytes():
    body = bytes.fromhex("036c616200 017400 01 fe 02 ee90 00")
    [column] = parse_table_map(body, "mysql", COLLATIONS).columns
    assert (column.type, column.metadata) == (FieldType.STRING, 400)


# T12: columns that the server adds by itself
@pytest.mark.parametrize(("unsigned", "nullable", "hidden"), [(True, True, 1), (False, True, 0), (True, False, 0)])
def test_t12_only_a_hash_column_that_mariadb_added_is_hidden(unsigned, nullable, hidden):
    """The server adds it as BIGINT UNSIGNED NULL; a user's column may have the same name."""
    # lab.t; INT and BIGINT, without metadata; whether the second is nullable; whether it is unsigned; below, the names
    body = bytes.fromhex(f"036c616200 017400 02 0308 00 {nullable << 1:02x} 0101 {unsigned << 6:02x}")
    names = bytes.fromhex("02 6964 0d") + b"DB_ROW_HASH_1"
    table = parse_table_map(body + bytes([4, len(names)]) + names, "mariadb", COLLATIONS)
    assert (len(table.columns), table.hidden) == (2 - hidden, hidden)
