"""Random numbers, complete rows and vectors, in more detail than in test_binlog_matrix.py."""

import math
import random
import struct

import pytest

from common.binlog_rows import read_rows
from common.connections import printing
from databus_binlog import float_text


async def test_any_double_has_the_servers_text_and_any_float_keeps_its_value(source, schema, execute, queries):
    rng = random.Random(7)
    doubles = [struct.unpack("<d", rng.randbytes(8))[0] for _ in range(200)]
    doubles += [rng.randint(-(10**16), 10**16) / 10 ** rng.randint(0, 30) for _ in range(300)]
    doubles = [value for value in doubles if math.isfinite(value)]
    await execute("CREATE TABLE d (v DOUBLE, f FLOAT)")
    start = await queries.current_position()
    for at in range(0, len(doubles), 100):
        part = doubles[at : at + 100]
        singles = [value if abs(value) < 1e38 else 0.0 for value in part]
        await execute(
            "INSERT INTO d VALUES " + ", ".join(f"({v!r}, {f!r})" for v, f in zip(part, singles, strict=True))
        )
    async with printing(source) as run:  # not with CONCAT(v), in which MySQL truncates long texts
        printed = await run(f"SELECT v FROM {schema}.d")
    read = [image for _, rows in await read_rows(source, start, schema) for image in rows.images()]
    assert [image[:1] for image in read] == printed
    assert [image[0] for image in read] == [float_text(value) for value in doubles]
    for image, value in zip(read, doubles, strict=True):
        single = struct.pack("<f", value if abs(value) < 1e38 else 0.0)
        assert struct.pack("<f", float(image[1])) == single


async def test_updates_and_deletes_have_complete_row_images(source, schema, execute, queries):
    await execute("CREATE TABLE u (id INT PRIMARY KEY, name VARCHAR(20), note TEXT)")
    await execute("INSERT INTO u VALUES (1, 'one', NULL), (2, NULL, 'two')")
    start = await queries.current_position()
    await execute("UPDATE u SET name = 'new' ORDER BY id")
    await execute("DELETE FROM u WHERE id = 2")
    (table, update), (same_table, delete) = await read_rows(source, start, schema)
    assert (update.action, update.count, update.statement_end) == ("update", 4, True)
    assert update.images() == [
        [b"1", b"one", None],
        [b"1", b"new", None],
        [b"2", None, b"two"],
        [b"2", b"new", b"two"],
    ]
    assert (delete.action, delete.images()) == ("delete", [[b"2", b"new", b"two"]])
    assert (table.schema, table.name, table.key) == (schema, "u", (0,))
    assert [column.name for column in table.columns] == ["id", "name", "note"]
    assert table is same_table


@pytest.mark.parametrize("source", ["mysql"], indirect=True)
async def test_a_vector_is_bytes_of_floats_and_does_not_shift_the_character_sets_of_other_columns(
    source, schema, execute, queries
):
    await execute("CREATE TABLE v (id INT PRIMARY KEY, a VARCHAR(9), v VECTOR(2), b VARCHAR(9) CHARACTER SET latin1)")
    start = await queries.current_position()
    await execute("INSERT INTO v VALUES (1, 'é', STRING_TO_VECTOR('[1,-2.5]'), 'é')")
    [(table, rows)] = await read_rows(source, start, schema)
    assert rows.images() == [[b"1", "é".encode(), struct.pack("<2f", 1, -2.5), "é".encode()]]
    assert table.columns[2].dimensions == 2
