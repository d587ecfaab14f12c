"""Which changes of a record a chunked dump has, when its parts were read at different positions."""

from typing import Any

import pytest

from databus.block import Block
from databus.bookmark import Bookmark, BookmarkBuilder, Part, Parts
from databus.chunks import ChunkJoin
from databus.formats.databus import DatabusRows
from databus.origin import Origin
from databus_binlog import Position
from databus_core.errors import ChangesLost, SchemaMismatch
from databus_core.events import Action

ROWS = DatabusRows(b'{"Schema":"shop","Name":"t","Columns":[{"Name":"id","RawType":"int(11)"}],"PKColumns":[0]}')


def at(offset: int) -> Position:
    return Position("", "b.000001", offset)


#: rows below 10 as of position 100, from 10 to below 20 as of 300, others as of 200
PARTS = Parts("id", [Part(at(100)), Part(at(300), 10), Part(at(200), 20)])
JOIN = ChunkJoin({"shop.t": PARTS})


def after(action: Action, *ids: object, end: int, done: int = 0, query: str | None = None) -> list[Block]:
    images = [[str(each).encode()] for each in ids]
    origin = Origin("0" * 15 + "5-0000000000", at(end), topic="t", partition=0, offset=7)
    return JOIN.after(Block(action, ROWS, origin, images, query, done), lambda part: end <= part.offset)


def shown(blocks: list[Block]) -> list[Any]:
    return [(block.action, [int(image[0]) for image in block.images]) for block in blocks]


def test_each_row_is_compared_with_the_position_of_its_part() -> None:
    assert shown(after(Action.INSERT, 5, 15, 25, end=100)) == []
    assert shown(after(Action.INSERT, 5, 9, 10, 19, 20, 25, end=150)) == [(Action.INSERT, [5, 9])]
    assert shown(after(Action.DELETE, 5, 15, 25, end=250)) == [(Action.DELETE, [5, 25])]
    assert shown(after(Action.INSERT, 5, 15, 25, end=301)) == [(Action.INSERT, [5, 15, 25])]


def test_an_update_that_moves_a_row_to_another_part_may_be_an_insert_or_a_delete() -> None:
    pairs = [5, 6, 5, 15, 15, 5, 15, 16]
    found = [(Action.UPDATE, [5, 6]), (Action.DELETE, [5]), (Action.INSERT, [5])]
    assert shown(after(Action.UPDATE, *pairs, end=150)) == found


def test_a_program_continues_between_the_blocks_of_a_record() -> None:
    pairs = [5, 6, 5, 15, 5, 16]
    update, delete = after(Action.UPDATE, *pairs, end=150)
    for origin, rows, expected in (
        (update.origin, None, (1, 7)),
        (delete.origin, 1, (2, 7)),
        (delete.origin, None, None),
    ):
        builder = BookmarkBuilder(Bookmark(pipeline="p", tables=[], offsets={}))
        builder.done(origin, rows)
        bookmark = builder.bookmark()
        partial = bookmark.partial
        assert (partial and (partial.rows, partial.offset)) == expected
        assert bookmark.offsets == {"t": {0: 7 if expected else 8}}
        resumed = after(Action.UPDATE, *pairs, end=150, done=partial.rows) if partial else []
        rest = [(block.action, block.done) for block in resumed]
        assert rest == ([(Action.DELETE, partial.rows - 1)] if partial else [])


def test_a_statement_between_the_positions_of_two_parts_is_refused() -> None:
    assert shown(after(Action.ALTER, end=100, query="ALTER")) == []
    assert len(after(Action.ALTER, end=301, query="ALTER")) == 1
    with pytest.raises(ChangesLost, match=r"a statement changed shop\.t during the dump: delete the dump"):
        after(Action.ALTER, end=200, query="ALTER")


def test_a_create_if_not_exists_during_the_dump_has_changed_nothing() -> None:
    assert shown(after(Action.CREATE, end=200, query="CREATE TABLE IF NOT EXISTS t (id INT)")) == []
    assert len(after(Action.CREATE, end=301, query="CREATE TABLE IF NOT EXISTS t (id INT)")) == 1


def test_a_key_that_is_no_integer_is_refused() -> None:
    with pytest.raises(SchemaMismatch):
        after(Action.INSERT, "x", end=150)


def test_a_table_in_one_part_needs_no_key() -> None:
    join = ChunkJoin({"shop.t": Parts("", [Part(at(100))])})
    block = Block(Action.INSERT, ROWS, Origin(), [[b"x"]])
    assert (join.after(block, lambda part: True), join.after(block, lambda part: False)) == ([], [block])
