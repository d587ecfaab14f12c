"""A mirror: the current rows of a table, made from the change log. It follows one transaction after the other.

Each commit to the mirror has the mirror's state: how far it has come, and the definition of its rows. A statement takes
effect between the entries before it and those after it, so all rows are read with their own definition.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import msgspec
from pyspark.sql import DataFrame, SparkSession

from databus_changes.tables import TableName
from databus_core.definitions import decode_definition, encode_definition, key_columns
from databus_core.events import Table
from databus_core.routes import is_exact
from databus_core.settings.rules import Rule
from databus_spark.alter import RowChange
from databus_spark.changelog import ChangeLog
from databus_spark.errors import MirrorChanged, TableParked
from databus_spark.formats import open_table
from databus_spark.last_images import NO_KEY, last_of_each_key, merge_latest, row_columns, with_keys
from databus_spark.mirror_columns import SEQUENCE, mirror_columns, same_rows
from databus_spark.mirror_state import DumpBase, MirrorState, decode_state, encode_state
from databus_spark.mirror_versions import version_before
from databus_spark.published_change import published_change
from databus_spark.table_changes import Statement, TableChanges
from databus_spark.types import TypeOptions, identifier, typed_cells

#: a change that is as old as the row is the same change again, or one of the other image of its record
_NEWER = "s._seq >= t._seq"


class Mirror:
    """The mirror of one table, as one session sees it."""

    def __init__(
        self,
        spark: SparkSession,
        log: ChangeLog,
        name: TableName,
        path: str,
        types: TypeOptions,
        rules: Sequence[Rule],
    ) -> None:
        """Open a mirror. It can follow if it was made with these options for types; or it can be made with them.

        `rules` are those by which rows are published.
        """
        self._log = log
        self._types = types
        self._rules = rules
        self.name = name
        self.table = open_table(spark, path)
        #: text of the last commit that was read or made here
        self._text = self.table.text() if self.table.exists else ""
        #: the state of that commit; over transactions without changes of the table it goes on here without a commit
        self.state = decode_state(self._text) if self._text else None

    @property
    def definition(self) -> Table | None:
        """Definition of its rows; None if there is no mirror, or the table was dropped."""
        state = self.state
        return decode_definition(state.definition) if state and state.definition and not state.dropped else None

    def load(self, rows: DataFrame, table: Table, state: MirrorState) -> None:
        """Replace everything by the rows of a dump, with the column `cells`; or, after the first step, add rows to it.

        Raises TableParked; then the mirror has no rows of this dump.
        """
        if state.transaction < self._log.trimmed:
            raise TableParked("the change log does not have all that is newer than its dump any more")
        columns = typed_cells(table, row_columns(table, self._types), self._types)
        typed = with_keys(rows.selectExpr(*columns, f"'' as {SEQUENCE}"), table, self._types)
        state = msgspec.structs.replace(state, types=self._types)
        begun = self.state if self.state and self.state.files else None
        try:
            with _parking_keys(table):
                if begun and (begun.base, begun.types) == (state.base, state.types):
                    self._append(typed, state)
                else:
                    self._commit(state, lambda text: self.table.overwrite(typed, text))
        except TableParked:
            if begun:  # the rows of the earlier steps alone are no mirror
                self.drop(begun.transaction)
            raise

    def _append(self, rows: DataFrame, state: MirrorState) -> None:
        """Append rows to the last commit, unless another sink appends rows to it at the same time."""
        version, _ = self.table.last()
        self._commit(state, lambda text: self.table.append(rows, text, f"load-{version}"))
        self._require_unchanged()

    def advance(self, changes: TableChanges, last: int) -> None:
        """Follow the change log up to a transaction; `changes` is what it has of the table until then.

        If the mirror has a `base`, they are those of the method `changes`. Raises TableParked.
        """
        if not is_exact(self._rules, *self.name):
            reason = "its values are not published exactly: compat: strict in publisher.options or publisher.routes"
            raise TableParked(reason, heals=False)
        if self._may_have_been_dropped(changes):
            changes = self.changes(last)
        after = self.state.transaction if self.state else -1
        statements = [each for each in changes.statements if after < each.transaction <= last]
        start = max((index for index, each in enumerate(statements) if each.is_reset), default=0)
        for statement in statements[start:]:  # what was before the last reset does not matter any more
            if statement.action == "invalid":
                raise TableParked(f"{statement.place} cannot be used: {statement.query}")
            if not statement.is_reset:
                self._write_rows(changes, statement.transaction - 1)
            self._execute(statement, changes.definitions[statement.version])
        self._write_rows(changes, last)

    def rows(self) -> tuple[DataFrame, MirrorState]:
        """Return the rows as of now, without `_seq`, and the state that they have, also if another process writes.

        They are those that readers get, also if another program than a sink has changed them.
        """
        last, newest = self.table.last(), self.table.newest()
        while last != (last := self.table.last()):  # a sink has committed in between
            newest = self.table.newest()
        return self.table.read(newest).drop(SEQUENCE), decode_state(last[1])

    def changes(self, last: int) -> TableChanges:
        """Return what the change log has of the table after the mirror's state, up to a transaction."""
        return self._log.changes_of(self.name, self.state.transaction if self.state else -1, last, self._condition)

    def reset(self, table: Table, transaction: int) -> None:
        """Become an empty mirror of this table, because of a statement in the transaction, which may also have rows.

        A table without a key does not get a mirror; one that has a mirror keeps it.
        """
        if not table.primary_key and not self.table.exists:
            self.state = MirrorState(transaction - 1, "", types=self._types)
            return
        state = MirrorState(transaction - 1, encode_definition(table), types=self._types, emptied=True)
        self._commit(state, lambda text: self.table.empty(mirror_columns(table, self._types), text))

    def drop(self, transaction: int) -> None:
        """Remove all rows, because the table is gone. A table that has no mirror does not get one."""
        definition = self.state.definition if self.state else ""
        state = MirrorState(transaction, definition, dropped=True, types=self._types)
        if definition:
            columns = mirror_columns(decode_definition(definition), self._types)
            self._commit(state, lambda text: self.table.empty(columns, text))
        self.state = state

    def copy(self, source: "Mirror", table: Table, query: str, transaction: int) -> None:
        """Become what another mirror was before a transaction, which renamed that table, and maybe altered it."""
        before = version_before(source.table, transaction)
        if not table.primary_key:
            if before and not before[1].dropped:
                raise TableParked("it has no primary key", heals=False)
            self.drop(transaction)  # it had no mirror, and gets none
            return
        if before is None or before[1].dropped:
            raise TableParked(f"it was renamed from {'.'.join(source.name)}, whose rows are not in the lake")
        version, state = before
        change = self._change(decode_definition(state.definition), table, query)
        self._rewrite(source.table.read(version), change, table, transaction, in_place=False)

    def begin(self, rows: DataFrame, state: MirrorState) -> None:
        """Replace everything by rows that another mirror had in a state."""
        self._commit(state, lambda text: self.table.overwrite(rows, text))

    # --- statements -----------------------------------------------------------------------------------------------

    def _execute(self, statement: Statement, table: Table) -> None:
        before, transaction = self.definition, statement.transaction
        match statement.action:
            case "create" if not statement.is_reset and not self._is_known:
                if table.primary_key:
                    raise TableParked("CREATE TABLE IF NOT EXISTS does not show whether it had rows")
            case "create" | "truncate" if statement.is_reset or before is None:
                # CREATE TABLE … SELECT, and the TRUNCATE of a backfill, have rows in the same transaction
                self.reset(table, transaction)
            case "drop":
                self.drop(transaction)
            case "alter" if before is not None:
                change = self._change(before, table, statement.query)
                if not change.is_identity or not same_rows(before, table):
                    rows = self.table.read(self._require_unchanged())
                    self._rewrite(rows, change, table, transaction, in_place=change.only_schema)
            case "alter" if table.primary_key:
                raise TableParked("its earlier rows are not in the lake", any_dump=True)
            case _:
                pass

    def _change(self, before: Table, after: Table, query: str) -> RowChange:
        return published_change(before, after, query, self._types, self._rules)

    def _rewrite(self, rows: DataFrame, change: RowChange, after: Table, transaction: int, *, in_place: bool) -> None:
        """Change the rows as a statement did; `in_place`: only by changing the schema, if the table format can."""
        doubts = " or ".join(change.doubts.values())
        if doubts and rows.where(doubts).limit(1).count():
            raise TableParked(f"a statement may have changed values of {', '.join(change.doubts)}")
        state = MirrorState(transaction, encode_definition(after), types=self._types)
        into = mirror_columns(after, self._types)
        present = dict(rows.dtypes)
        if in_place:
            wider = {column: kind for column, kind in into.items() if present.get(column, kind) != kind}
            if all(self.table.widens(present[column], kind) for column, kind in wider.items()):
                added = {column: kind for column, kind in into.items() if column not in present}
                self._commit(state, lambda text: self.table.add_columns(added, wider, text))
                return
        columns = [f"{text} as {identifier(column)}" for column, text in change.columns.items()]
        self._commit(state, lambda text: self.table.overwrite(rows.selectExpr(*columns, SEQUENCE), text))

    # --- rows -----------------------------------------------------------------------------------------------------

    def _write_rows(self, changes: TableChanges, last: int) -> None:
        """Merge the row images up to a transaction."""
        after = self.state.transaction if self.state else -1
        if last <= after:
            return
        images = [each for each in changes.images if each.last > after and each.first <= last]
        if not images:
            if self.state:
                self.state = msgspec.structs.replace(self.state, transaction=last, base=self._base(last), emptied=False)
            return
        table = self.definition
        if self.state is None or table is None:
            if any(changes.definitions[each.version].primary_key for each in images):
                # `first` and `last` of images may be before and after the transactions that are wanted
                exact = self._log.changes_of(self.name, after, last, self._condition)
                if any(exact.definitions[each.version].primary_key for each in exact.images):
                    raise TableParked("its earlier rows are not in the lake", any_dump=True)
            return  # a table without a key has no mirror
        if any(not same_rows(changes.definitions[each.version], table) for each in images):
            exact = self._log.changes_of(self.name, after, last, self._condition)
            if any(not same_rows(exact.definitions[each.version], table) for each in exact.images):
                raise TableParked("rows have columns that no statement explains")
        if not table.primary_key:
            raise TableParked("it has no primary key", heals=False)
        entries = self._log.entries(self.name, after, last, self._condition).where("_query is null")
        state = MirrorState(last, self.state.definition, self._base(last), types=self._types)
        latest = last_of_each_key(entries, table, sum(each.partitions for each in images), self._types)
        with _parking_keys(table):
            self._commit(state, lambda text: merge_latest(self.table, latest, key_columns(table), text, _NEWER))

    def _commit(self, state: MirrorState, commit: Callable[[str], None]) -> None:
        """Make a commit that has a state. Raises MirrorChanged if the mirror is not as it was left here.

        Another sink may write by mistake, or one that was suspended may go on: its rows must not be mixed with ours.
        """
        self._require_unchanged()
        text = encode_state(state)
        commit(text)
        self.state, self._text = state, text

    def _require_unchanged(self) -> int | None:
        """Return the version of the last commit that was read or made here; None if there is no table.

        Raises MirrorChanged if another process has committed something since.
        """
        version, text = self.table.last() if self.table.exists else (None, "")
        if text != self._text:
            raise MirrorChanged(f"another sink writes to {self.table.path}: stop one of them")
        return version

    def _base(self, last: int) -> DumpBase | None:
        """Return the dump that later entries than those of a transaction must be compared with."""
        base = self.state.base if self.state else None
        return base if base and last < base.until else None

    @property
    def _is_known(self) -> bool:
        """Whether it is known which rows the table has, or that it has none."""
        return self.state is not None and (self.state.dropped or self.state.definition != "")

    def _may_have_been_dropped(self, changes: TableChanges) -> bool:
        """Return whether the log must be asked if a table that has no mirror was dropped before these changes."""
        first = changes.statements[0] if changes.statements else None
        return self.state is None and first is not None and first.action == "create" and not first.is_reset

    @property
    def _condition(self) -> str:
        return self.state.base.newer_entries if self.state and self.state.base else "true"


@contextmanager
def _parking_keys(table: Table) -> Iterator[None]:
    """Raise TableParked if rows cannot be committed because the lake's types cannot represent the key of one."""
    try:
        yield
    except Exception as error:
        if NO_KEY not in str(error):
            raise
        reason = f"a primary key value of {table.full_name}, for instance a zero date, is none of the lake's type"
        raise TableParked(reason, heals=False) from error
