"""The state of a table while a statement is applied to it."""

from collections.abc import Mapping

import msgspec

from databus_changes.ddl.column_changes import ColumnChanges
from databus_changes.ddl.definition import ColumnDefinition, convert_column, is_hashed
from databus_changes.ddl.dialect import Dialect
from databus_core.errors import CannotApply
from databus_core.events import Column, Index, Table

_PRIMARY = "PRIMARY"


class TableDraft:
    """Collects the actions of one statement on one table; `table` applies them in the order that servers use.

    Indexes are identified by name; the primary key is the one called PRIMARY. Names are not case-sensitive.
    The order of indexes matters, because without a primary key the server uses the first fitting unique index.
    """

    def __init__(self, dialect: Dialect, charset: str, table: Table | None = None) -> None:
        self._dialect = dialect
        #: default character set of text columns that the statement defines; "" if it is not known
        self.charset = charset
        self._columns: list[Column] = list(table.columns) if table else []
        #: name in lower case → index
        self._indexes = {index.name.lower(): index for index in table.indexes} if table else {}
        if table and table.primary_key:
            names = tuple(table.columns[index].name for index in table.primary_key)
            self._indexes[_PRIMARY.lower()] = Index(_PRIMARY, names, unique=True)
        self._key_assumed = table is not None and table.key_assumed
        #: character set to which all text columns are converted; "" if they are not
        self._converted = ""
        self._dropped: list[str] = []
        self._renamed: dict[str, str] = {}
        #: (old name, definition) of each redefined column, ("", definition) of each added one, in the statement's order
        self._defined: list[tuple[str, ColumnDefinition]] = []
        self._visible: dict[str, bool] = {}
        self._dropped_indexes: list[str] = []
        #: old name in lower case → new name
        self._renamed_indexes: dict[str, str] = {}
        #: each added index, and whether it has IF NOT EXISTS
        self._added_indexes: list[tuple[Index, bool]] = []

    # --- collecting -----------------------------------------------------------------------------------------------

    def has_column(self, name: str) -> bool:
        """Return whether the table had a column of this name before the statement."""
        return any(column.name.lower() == name.lower() for column in self._columns)

    def add_column(self, definition: ColumnDefinition) -> None:
        """Add a column, and the keys that are its attributes."""
        self.redefine_column("", definition)

    def redefine_column(self, name: str, definition: ColumnDefinition) -> None:
        """Change a column's definition, and maybe its name and position. Add the keys that are its attributes."""
        self._defined.append((name, definition))
        if definition.primary:
            self.add_key("", [definition.name], primary=True)
        if definition.unique:
            self.add_key("", [definition.name], unique=True)

    def rename_column(self, old: str, new: str) -> None:
        """Rename a column."""
        self._renamed[old] = new

    def drop_column(self, name: str) -> None:
        """Drop a column from the table and from all indexes."""
        self._dropped.append(name)

    def set_visible(self, column: str, *, visible: bool) -> None:
        """Show or hide a column."""
        self._visible[column.lower()] = visible

    def convert_columns(self, charset: str) -> None:
        """Convert all text columns to a character set, also those that the statement adds with another one."""
        self._converted = charset

    def add_key(
        self,
        name: str,
        columns: list[str],
        *,
        primary: bool = False,
        unique: bool = False,
        if_not_exists: bool = False,
    ) -> None:
        """Add an index; `unique`: see `Index`. An index without a name is named after its first column."""
        index = Index(_PRIMARY if primary else name, tuple(columns), primary or unique)
        self._added_indexes.append((index, if_not_exists))

    def drop_index(self, name: str) -> None:
        """Drop an index, if it is known; an index over expressions is not."""
        self._dropped_indexes.append(name.lower())

    def rename_index(self, old: str, new: str) -> None:
        """Rename an index, if it is known."""
        self._renamed_indexes[old.lower()] = new

    def column_changes(self) -> ColumnChanges:
        """Return what was collected about columns."""
        pairs = [*self._renamed.items(), *((old, new.name) for old, new in self._defined if old)]
        return ColumnChanges(
            renamed={new.lower(): old.lower() for old, new in pairs if new.lower() != old.lower()},
            added={new.name.lower(): new for old, new in self._defined if not old},
            redefined={new.name.lower(): new for old, new in self._defined if old},
            dropped=frozenset(name.lower() for name in self._dropped),
            converted=self._converted,
        )

    # --- applying -------------------------------------------------------------------------------------------------

    def table(self, schema: str, name: str) -> Table:
        """Return the table after the statement.

        Raises CannotApply if the statement does not fit the known table, or a character set is unknown or unsupported.
        """
        if self._converted:
            self._convert_columns()
        self._change_indexes()
        self._change_columns()
        for index, if_not_exists in self._added_indexes:
            if not (if_not_exists and index.name.lower() in self._indexes):
                self._add_index(index)
        return self._build(schema, name)

    def _convert_columns(self) -> None:
        if self._converted == "binary":
            raise CannotApply("it converts columns to the character set binary")
        self._columns = [convert_column(column, self._converted) for column in self._columns]

    def _change_indexes(self) -> None:
        """Drop and rename indexes. MySQL leaves an index in its position that is dropped and added again unchanged."""
        for name in self._dropped_indexes:
            again = self._indexes.get(name), False
            if again in self._added_indexes and self._dialect.flavor == "mysql":
                self._added_indexes.remove(again)
            else:
                self._indexes.pop(name, None)
        self._key_assumed &= _PRIMARY.lower() not in self._dropped_indexes
        names = {name: self._renamed_indexes.get(name, index.name) for name, index in self._indexes.items()}
        self._indexes = {
            names[name].lower(): msgspec.structs.replace(index, name=names[name])
            for name, index in self._indexes.items()
        }

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
        gone = dropped - {new.name.lower() for old, new in self._defined if not old}  # an index keeps a replaced column
        for name, index in self._indexes.items():
            columns = tuple(renamed.get(c.lower(), c) for c in index.columns if c.lower() not in gone)
            self._indexes[name] = msgspec.structs.replace(index, columns=columns)

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
        column = definition.column(self._converted or self.charset, self._dialect)
        converts = self._converted and column.charset
        return msgspec.structs.replace(column, charset=self._converted) if converts else column

    def _add_index(self, index: Index) -> None:
        if index.name == _PRIMARY and self._primary_columns():
            raise CannotApply("it adds a second primary key")
        name = base = index.name or index.columns[0] or "functional_index"
        number = 2
        while name != _PRIMARY and name.lower() in self._indexes:
            name, number = f"{base}_{number}", number + 1
        self._indexes[name.lower()] = msgspec.structs.replace(index, name=name)

    def _primary_columns(self) -> tuple[str, ...]:
        primary = self._indexes.get(_PRIMARY.lower())
        return primary.columns if primary else ()

    def _build(self, schema: str, name: str) -> Table:
        positions = {column.name.lower(): position for position, column in enumerate(self._columns)}
        if len(positions) < len(self._columns) or not positions:
            raise CannotApply("it leaves two columns with one name, or no column")
        key = [column.lower() for column in self._primary_columns()]
        if not positions.keys() >= set(key):
            raise CannotApply("its primary key names a column that is not known")
        primary_key = tuple(positions[column] for column in key)
        columns = tuple(
            msgspec.structs.replace(column, nullable=False) if position in primary_key else column
            for position, column in enumerate(self._columns)
        )
        return Table(
            schema=schema,
            name=name,
            columns=columns,
            primary_key=primary_key,
            key_assumed=self._key_assumed and bool(primary_key),
            indexes=tuple(self._sorted_indexes({column.name.lower(): column for column in columns})),
            charset=self.charset,
        )

    def _sorted_indexes(self, columns: Mapping[str, Column]) -> list[Index]:
        """Return the indexes of known columns in the server's order; `columns`: by their names in lower case.

        That is the primary key, the unique indexes over NOT NULL columns, other unique ones, and the rest (sort_keys).
        """
        found: list[tuple[tuple[bool, ...], Index]] = []
        for index in self._indexes.values():
            parts = [columns[name.lower()] for name in index.columns if name.lower() in columns]
            if not parts or len(parts) < len(index.columns):
                continue
            is_primary = index.name == _PRIMARY
            unique = is_primary or (index.unique and not (self._dialect.flavor == "mariadb" and is_hashed(parts)))
            names = tuple(column.name for column in parts)
            order = not is_primary, not unique, any(column.nullable for column in parts)
            found.append((order, Index(index.name, names, unique)))
        return [index for _, index in sorted(found, key=lambda item: item[0])]
