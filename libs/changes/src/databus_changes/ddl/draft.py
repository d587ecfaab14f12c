"""The state of a table while a statement is applied to it."""

from collections.abc import Iterable

import msgspec

from databus.errors import CannotApply
from databus.events import Column, Index, Table
from databus_changes.ddl.definition import ColumnDefinition, convert_column
from databus_changes.ddl.dialect import Dialect

_PRIMARY = "PRIMARY"


class TableDraft:
    """Collects the actions of one statement on one table; `table` applies them in the order that servers use.

    Indexes are identified by name; the primary key is the one called PRIMARY. Column names are not case-sensitive.
    """

    def __init__(self, dialect: Dialect, charset: str, table: Table | None = None) -> None:
        self._dialect = dialect
        #: default character set of text columns that the statement defines; "" if it is not known
        self.charset = charset
        self._columns: list[Column] = list(table.columns) if table else []
        self._indexes = {index.name: list(index.columns) for index in table.indexes} if table else {}
        if table and table.primary_key:
            self._indexes[_PRIMARY] = [table.columns[index].name for index in table.primary_key]
        self._converts = False
        self._dropped: list[str] = []
        self._renamed: dict[str, str] = {}
        #: (old name, definition) of each redefined column, ("", definition) of each added one, in the statement's order
        self._defined: list[tuple[str, ColumnDefinition]] = []
        self._visible: dict[str, bool] = {}
        self._dropped_indexes: list[str] = []
        self._renamed_indexes: list[tuple[str, str]] = []
        #: (name, columns, if_not_exists) of each added key
        self._keys: list[tuple[str, list[str], bool]] = []

    # --- collecting -----------------------------------------------------------------------------------------------

    def has_column(self, name: str) -> bool:
        """Return whether the table had a column of this name before the statement."""
        return any(column.name.lower() == name.lower() for column in self._columns)

    def add_column(self, definition: ColumnDefinition) -> None:
        """Add a column."""
        self._defined.append(("", definition))

    def redefine_column(self, name: str, definition: ColumnDefinition) -> None:
        """Change a column's definition, and maybe its name and position."""
        self._defined.append((name, definition))

    def rename_column(self, old: str, new: str) -> None:
        """Rename a column."""
        self._renamed[old] = new

    def drop_column(self, name: str) -> None:
        """Drop a column from the table and from all indexes."""
        self._dropped.append(name)

    def set_visible(self, column: str, *, visible: bool) -> None:
        """Show or hide a column."""
        self._visible[column.lower()] = visible

    def convert_columns(self) -> None:
        """Convert all text columns to the table's new character set."""
        self._converts = True

    def add_key(self, name: str, columns: list[str], *, primary: bool = False, if_not_exists: bool = False) -> None:
        """Add an index. An index without a name is named after its first column."""
        self._keys.append((_PRIMARY if primary else name, columns, if_not_exists))

    def drop_index(self, name: str) -> None:
        """Drop an index, if it is known; an index over expressions is not."""
        self._dropped_indexes.append(_PRIMARY if name.upper() == _PRIMARY else name)

    def rename_index(self, old: str, new: str) -> None:
        """Rename an index, if it is known."""
        self._renamed_indexes.append((old, new))

    # --- applying -------------------------------------------------------------------------------------------------

    def table(self, schema: str, name: str) -> Table:
        """Return the table after the statement.

        Raises CannotApply if the statement does not fit the known table, or a character set is unknown or unsupported.
        """
        if self._converts:
            self._convert_columns()
        for index in self._dropped_indexes:
            self._indexes.pop(index, None)
        for old, new in self._renamed_indexes:
            if old in self._indexes:
                self._indexes[new] = self._indexes.pop(old)
        self._change_columns()
        self._add_keys()
        return self._build(schema, name)

    def _convert_columns(self) -> None:
        if self.charset == "binary":
            raise CannotApply("it converts columns to the character set binary")
        self._columns = [convert_column(column, self.charset) for column in self._columns]

    def _change_columns(self) -> None:
        """Drop, rename and define columns as servers do it (mysql_prepare_alter_table).

        Columns that keep their position come first. Then the other columns are inserted one by one; AFTER names
        a renamed column by its new name.
        """
        dropped = {name.lower() for name in self._dropped}
        staying = {old.lower(): new for old, new in self._defined if old and new.after is None}
        moving = {old.lower() for old, new in self._defined if old and new.after is not None}
        self._require_columns([*dropped, *(old for old, _ in self._defined if old), *self._renamed])
        renamed = {old.lower(): new for old, new in self._renamed.items()}
        old_columns, self._columns = self._columns, []
        for column in old_columns:
            name = column.name.lower()
            if name in staying:
                self._columns.append(self._defined_column(staying[name]))
            elif name not in dropped | moving:
                self._columns.append(msgspec.structs.replace(column, name=renamed.get(name, column.name)))
        for old, definition in self._defined:
            if not old or definition.after is not None:
                self._columns.insert(self._position(definition.after), self._defined_column(definition))
        self._columns = [
            msgspec.structs.replace(c, invisible=not self._visible.get(c.name.lower(), not c.invisible))
            for c in self._columns
        ]
        renamed |= {old.lower(): new.name for old, new in self._defined if old}
        for index, columns in self._indexes.items():
            self._indexes[index] = [renamed.get(c.lower(), c) for c in columns if c.lower() not in dropped]

    def _require_columns(self, names: list[str]) -> None:
        if len({name.lower() for name in names}) < len(names) or not all(map(self.has_column, names)):
            raise CannotApply("it names a column that is not known, or names one twice")

    def _position(self, after: str | None) -> int:
        if after is None:
            return len(self._columns)
        if not after:
            return 0
        for position, column in enumerate(self._columns, start=1):
            if column.name.lower() == after.lower():
                return position
        raise CannotApply("its AFTER names a column that is not known")

    def _defined_column(self, definition: ColumnDefinition) -> Column:
        return definition.column(self.charset, self._dialect)

    def _add_keys(self) -> None:
        """Add the keys that are attributes of columns, then the keys that have clauses of their own."""
        for _, definition in self._defined:
            if definition.primary:
                self._add_primary_key([definition.name])
            if definition.unique:
                self._add_index("", [definition.name])
        for name, columns, if_not_exists in self._keys:
            if name == _PRIMARY:
                self._add_primary_key(columns)
            elif not (if_not_exists and name in self._indexes):
                self._add_index(name, columns)

    def _add_primary_key(self, columns: list[str]) -> None:
        if self._indexes.get(_PRIMARY):
            raise CannotApply("it adds a second primary key")
        self._indexes[_PRIMARY] = columns

    def _add_index(self, name: str, columns: list[str]) -> None:
        base = name or columns[0] or "functional_index"
        number = 2
        name = name or base
        while name in self._indexes:
            name, number = f"{base}_{number}", number + 1
        self._indexes[name] = columns

    def _build(self, schema: str, name: str) -> Table:
        positions = {column.name.lower(): position for position, column in enumerate(self._columns)}
        if len(positions) < len(self._columns) or not positions:
            raise CannotApply("it leaves two columns with one name, or no column")
        key = [column.lower() for column in self._indexes.get(_PRIMARY, [])]
        if not positions.keys() >= set(key):
            raise CannotApply("its primary key names a column that is not known")
        primary_key = tuple(positions[column] for column in key)
        columns = tuple(
            msgspec.structs.replace(column, nullable=False) if position in primary_key else column
            for position, column in enumerate(self._columns)
        )
        names = {column.name.lower(): column.name for column in columns}
        indexes = tuple(_index(name, columns, names) for name, columns in self._sorted() if columns and all(columns))
        return Table(
            schema=schema, name=name, columns=columns, primary_key=primary_key, indexes=indexes, charset=self.charset
        )

    def _sorted(self) -> Iterable[tuple[str, list[str]]]:
        """Return the names and columns of all indexes, the primary key first."""
        return sorted(self._indexes.items(), key=lambda item: item[0] != _PRIMARY)


def _index(name: str, columns: list[str], names: dict[str, str]) -> Index:
    return Index(name, tuple(names.get(column.lower(), column) for column in columns))
