"""Apply changes to a copy of a table: what the sink does to its mirrors, for users' own jobs."""

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from databus_core.definitions import decode_definition, key_columns
from databus_core.errors import CannotApply, InvalidSettings
from databus_core.events import Table
from databus_spark import delta
from databus_spark.changes import COLUMNS, DEFINITION
from databus_spark.last_images import REMOVED, last_of_keys, merge_latest
from databus_spark.mirror_columns import SEQUENCE
from databus_spark.table_changes import Statement
from databus_spark.types import Columns, can_represent, identifier, literal

#: of our commits; a mirror of the sink has other texts
_TEXT = "databus_spark.apply_changes"
#: the two records of a row that moves between partitions may have the same sequence
_NEWER = f"s._seq > t._seq or (s._seq = t._seq and not ({REMOVED}))"
_NO_KEY = "databus: a primary key value, for instance a zero date, has no type in the lake"


def apply_changes(changes: DataFrame, mirror: str) -> None:
    """Apply a batch of changes, as `read_changes` returns them, to the Delta table in the folder `mirror`.

    The last change of each primary key counts: the row is removed if that deleted it, and written, with its `_seq`,
    otherwise, unless the mirror has a newer one. TRUNCATE, DROP and CREATE remove the rows with lower sequences. A
    mirror that does not exist is created; columns that it lacks are added to it, and its types become wider.

    If batches are applied in the order of their offsets, as in `foreachBatch`, the mirror has each row as of its last
    change in them, and a batch may be applied again, for instance after a crash. Not guaranteed are:

    * whole transactions: a batch may have a part of one, and the next batch the rest. A batch with a TRUNCATE, DROP or
      CREATE is two commits, and the first one only removes rows.
    * deleted rows that have older changes later. A deleted row leaves no trace in the mirror, so a batch that is older
      than one that was applied, a replayed dead letter, or changes of a row that has moved to another partition,
      because columns of `routes.key` or the number of partitions changed, can bring it back, or remove a row.

    Raises CannotApply, before anything is written, at ALTER and RENAME TABLE, which may change rows that the mirror
    has, and if the table is created again with columns that the changes do not have; InvalidSettings if the changes do
    not fit the mirror. No other job may write to the mirror; one of the sink is refused.
    """
    table = _table(changes)
    key = key_columns(table)
    columns = {name: kind for name, kind in changes.dtypes if name == SEQUENCE or name not in COLUMNS}
    is_kept = changes.storageLevel != StorageLevel.NONE
    kept = changes if is_kept else changes.persist()
    try:
        reset = _last_reset(kept, table)
        copy = delta.Table(changes.sparkSession, mirror)
        _prepare(copy, columns)
        if reset:
            copy.delete(f"_seq < {literal(reset)}", _TEXT)
        images = kept.where(f"_row is not null and _seq >= {literal(reset)}")
        for name in key:
            images = images.withColumn(name, sql.expr(f"coalesce({identifier(name)}, raise_error('{_NO_KEY}'))"))
        latest = last_of_keys(images, key, [name for name in columns if name != SEQUENCE])
        merge_latest(copy, latest, key, _TEXT, _NEWER)
    finally:
        if not is_kept:
            kept.unpersist()


def _table(changes: DataFrame) -> Table:
    """Return the definition of the changes' columns. Raises InvalidSettings if they cannot be applied."""
    if changes.isStreaming:
        raise InvalidSettings("apply_changes needs a batch: call it in foreachBatch of the stream")
    fields = {field.name: field for field in changes.schema}
    definition = fields[SEQUENCE].metadata.get(DEFINITION) if SEQUENCE in fields else None
    if definition is None:
        raise InvalidSettings("the changes do not have the column _seq of read_changes: keep it as it is")
    table = decode_definition(definition)
    if not table.primary_key:
        raise InvalidSettings(f"{table.full_name} has no primary key, so it can have no mirror: add one to it")
    if missing := [name for name in (*key_columns(table), *COLUMNS) if name not in fields]:
        raise InvalidSettings(f"the changes lack the column {missing[0]} of read_changes: keep it")
    return table


def _last_reset(changes: DataFrame, table: Table) -> str:
    """Return the sequence of the last statement after which the table has no rows; empty if there is none.

    Raises CannotApply if a later statement changes rows, or the statement adds columns that the changes do not have.
    """
    columns = ("_seq", "_action", "_query", "_topic", "_partition", "_offset", "_definition")
    found = changes.where("_row is null").select(*columns).collect()
    statements = {Statement(seq, action, query, 0, *place): text for seq, action, query, *place, text in found}
    last = max((each.sequence for each in statements if each.is_reset), default="")
    known = {column.name.lower() for column in table.columns}
    for each, definition in statements.items():
        if each.sequence < last:
            continue
        others = f"changes.where(\"_action <> '{each.action}' or _seq <> '{each.sequence}'\")"
        if each.action == "alter":
            raise CannotApply(
                f"{each.place}: ALTER or RENAME TABLE may change rows that the mirror has: load it from a new dump; "
                f"or, if the statement does not, apply {others}"
            )
        created = decode_definition(definition).columns if each.action == "create" else ()
        if {column.name.lower() for column in created} - known:
            raise CannotApply(
                f"{each.place}: the table was created with columns that the changes do not have: restart the query; "
                f"or, if they were dropped later, apply {others}"
            )
    return last


def _prepare(table: delta.Table, columns: Columns) -> None:
    """Create a mirror, or give it the columns that it lacks. Raises InvalidSettings if its columns do not fit."""
    if not table.exists:
        table.empty(columns, _TEXT)
        return
    if table.text() not in ("", _TEXT):
        raise InvalidSettings(f"{table.path} is a table of databus-spark-sink, which no other job may change")
    present = table.columns()
    if SEQUENCE not in present:
        raise InvalidSettings(f"{table.path} lacks the column {SEQUENCE}, which read_dump gives: write it, too")
    if gone := sorted(present.keys() - columns.keys()):
        raise InvalidSettings(f"the changes lack the column {gone[0]} of {table.path}: drop it there")
    wider = {name: kind for name, kind in columns.items() if not can_represent(present.get(name, kind), kind)}
    if wrong := [name for name, kind in wider.items() if not can_represent(kind, present[name])]:
        raise InvalidSettings(
            f"column {wrong[0]} of {table.path} is {present[wrong[0]]} and in the changes {columns[wrong[0]]}: "
            "load the mirror from a new dump"
        )
    added = {name: kind for name, kind in columns.items() if name not in present}
    if added or wider:
        table.add_columns(added, wider, _TEXT)
