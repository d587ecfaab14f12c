"""The join of changes with a chunked dump, whose parts have positions of their own.

A part of a table has the rows whose leading key column, an integer, has a value in a range. It has exactly the changes
of these rows up to its position. So each row image of a record that is not after all parts is looked at by itself. An
update that moves a row to another part may be an insert or a delete after the dump.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeAlias

import msgspec

from databus.block import Block
from databus.bookmark import Part, Parts
from databus.change import Rows
from databus_binlog import Position
from databus_core.errors import ChangesLost, SchemaMismatch
from databus_core.events import Action
from databus_core.manifest import Manifest

#: whether a change is before or at a position
IsIncluded: TypeAlias = Callable[[Position], bool]
#: an action, and the images of one change
_Found: TypeAlias = tuple[Action, Sequence[Any]]


def parts_of(manifest: Manifest, tables: set[str]) -> dict[str, Parts]:
    """Return the parts of these tables in a chunked dump, as a bookmark has them; nothing of another dump."""
    columns = {each.full_name: each.columns[each.primary_key[0]].name for each in manifest.tables if each.primary_key}
    found = {}
    for table, chunks in groupby(manifest.chunks, key=lambda chunk: chunk.table):
        if table in tables:
            parts = [Part(low=each.low, position=_place(each.position)) for each in chunks if each.position]
            found[table] = Parts(columns.get(table, ""), parts)
    return found


def _place(position: Position) -> Position:
    return Position("", position.file, position.offset)


class ChunkJoin:
    """Which changes of tables a chunked dump has."""

    def __init__(self, tables: Mapping[str, Parts]) -> None:
        self._tables = {name: _Table(name, parts) for name, parts in tables.items()}

    def after(self, block: Block, is_included: IsIncluded) -> list[Block]:
        """Return the changes of a record that are not in the dump. `done` of the block counts them, too.

        Raises ChangesLost for a statement between the positions of two parts, and SchemaMismatch for a row whose part
        is not known.
        """
        table = self._tables.get(block.rows.table.full_name)
        if table is None or not is_included(table.last):
            return [block]
        return _blocks(block, table.after(block, is_included))


class _Table:
    def __init__(self, name: str, parts: Parts) -> None:
        self._name = name
        self._column = parts.column
        self._lows = [part.low for part in parts.parts[1:] if part.low is not None]
        self._positions = [part.position for part in parts.parts]
        self.last = max(self._positions, key=lambda position: position.log_order)

    def after(self, block: Block, is_included: IsIncluded) -> list[_Found]:
        """Return the changes that are not in the dump."""
        if block.query is not None:
            # The table was not altered during the dump, so a CREATE is one IF NOT EXISTS.
            if block.action is Action.CREATE or all(map(is_included, self._positions)):
                return []
            raise ChangesLost(
                f"a statement changed {self._name} during the dump: delete the dump (`databus dump delete`), and begin "
                "again with a new snapshot"
            )
        images = block.images
        if block.action is not Action.UPDATE:
            return [(block.action, (image,)) for image in images if not self._has(block.rows, image, is_included)]
        changes: list[_Found] = []
        for before, after in zip(images[::2], images[1::2], strict=True):
            has_before = self._has(block.rows, before, is_included)
            has_after = self._has(block.rows, after, is_included)
            if not has_before and not has_after:
                changes.append((Action.UPDATE, (before, after)))
            elif not has_before:
                changes.append((Action.DELETE, (before,)))
            elif not has_after:
                changes.append((Action.INSERT, (after,)))
        return changes

    def _has(self, rows: Rows, image: Any, is_included: IsIncluded) -> bool:
        """Return whether the part of a row has the change."""
        if not self._lows:
            return is_included(self._positions[0])
        try:
            key = int(rows.values(image)[self._column])
        except (LookupError, ValueError, TypeError) as error:
            raise SchemaMismatch(f"a row of {self._name} has no integer in column {self._column}") from error
        return is_included(self._positions[bisect_right(self._lows, key)])


def _blocks(block: Block, changes: list[_Found]) -> list[Block]:
    """Return blocks of consecutive changes with the same action; those that are done are left out."""
    found = []
    done, before = block.done, 0
    for action, group in groupby(changes, key=lambda change: change[0]):
        images = [images for _, images in group]
        end = before + len(images)
        through = 0 if end == len(changes) else end
        if end > done:
            origin = msgspec.structs.replace(block.origin, before=before, through=through)
            flat = [image for each in images for image in each]
            found.append(Block(action, block.rows, origin, flat, done=max(0, done - before)))
        before = end
    return found
