"""A table while a statement is applied to it: its keys go by names, which become places at the end."""

from collections.abc import Iterable, Sequence

import msgspec

from databus.errors import CannotApply
from databus.events import Column, Index, Table
from databus_changes.ddl.columns import Definition
from databus_changes.ddl.datatype import TEXT, enlarged
from databus_changes.ddl.dialect import Dialect
from databus_changes.declared import character_width

_PRIMARY = "PRIMARY"


class Draft:
    """Columns in order, and indexes by name; the primary key is the one called PRIMARY."""

    def __init__(self, dialect: Dialect, charset: str, table: Table | None = None) -> None:
        self._dialect = dialect
        #: of new text columns
        self.charset = charset
        self._columns: list[Column] = list(table.columns) if table else []
        self._indexes: dict[str, list[str]] = (
            {index.name: list(index.columns) for index in table.indexes} if table else {}
        )
        if table and table.primary_key:
            self._indexes[_PRIMARY] = [table.columns[place].name for place in table.primary_key]

    def table(self, schema: str, name: str) -> Table:
        """Give the table. Raises CannotApply where two columns have one name or a key names none."""
        places = {column.name.lower(): place for place, column in enumerate(self._columns)}
        if len(places) < len(self._columns) or not places:
            raise CannotApply("two columns of one name, or no column")
        key = self._indexes.get(_PRIMARY, [])
        try:
            primary_key = tuple(places[column.lower()] for column in key)
        except KeyError as error:
            raise CannotApply("the primary key names no column") from error
        names = {column.name.lower(): column.name for column in self._columns}
        indexes = tuple(
            Index(index, tuple(names.get(column.lower(), column) for column in columns))
            for index, columns in sorted(self._indexes.items(), key=lambda item: item[0] != _PRIMARY)
            if columns and all(columns)
        )
        columns = tuple(
            msgspec.structs.replace(column, nullable=False) if place in primary_key else column
            for place, column in enumerate(self._columns)
        )
        return Table(
            schema=schema, name=name, columns=columns, primary_key=primary_key, indexes=indexes, charset=self.charset
        )

    # --- columns --------------------------------------------------------------------------------------------------

    def has(self, name: str) -> bool:
        """Say whether there is a column of this name."""
        return any(column.name.lower() == name.lower() for column in self._columns)

    def change(self, dropped: Iterable[str], renamed: dict[str, str], placed: Sequence[tuple[str, Definition]]) -> None:
        """Drop, rename and define columns as one ALTER TABLE does it.

        placed: definitions in the statement's order with the old name of the column, empty for a new one. As servers do
        it (mysql_prepare_alter_table): what keeps its place comes first, then the others go where they are told, which
        may be after a column by its new name.
        """
        gone = {name.lower() for name in dropped}
        staying = {old.lower(): new for old, new in placed if old and new.after is None}
        leaving = {old.lower() for old, new in placed if old and new.after is not None}
        wanted = [*gone, *(old.lower() for old, _ in placed if old), *(old.lower() for old in renamed)]
        if len(set(wanted)) < len(wanted) or not all(map(self.has, wanted)):
            raise CannotApply("it names a column that is not known, or names one twice")
        old_columns, self._columns = self._columns, []
        for column in old_columns:
            name = column.name.lower()
            if name in staying:
                self._columns.append(self._made(staying[name]))
            elif name not in gone | leaving:
                new_name = next((new for old, new in renamed.items() if old.lower() == name), column.name)
                self._columns.append(msgspec.structs.replace(column, name=new_name))
        for old, definition in placed:
            if not old or definition.after is not None:
                self._columns.insert(self._place(definition.after), self._made(definition))
        names = {old.lower(): new.name for old, new in placed if old}
        names |= {old.lower(): new for old, new in renamed.items()}
        for index, columns in self._indexes.items():
            self._indexes[index] = [names.get(c.lower(), c) for c in columns if c.lower() not in gone]

    def _place(self, after: str | None) -> int:
        if after is None:
            return len(self._columns)
        if not after:
            return 0
        for place, column in enumerate(self._columns, start=1):
            if column.name.lower() == after.lower():
                return place
        raise CannotApply("AFTER names a column that is not known")

    def _made(self, definition: Definition) -> Column:
        return definition.column(self.charset, self._dialect)

    def convert(self, charset: str) -> None:
        """Give all text columns another character set."""
        if charset == "binary":
            raise CannotApply("a conversion to binary")
        for place, column in enumerate(self._columns):
            if column.type in TEXT:
                self._columns[place] = self._converted(column, charset)

    def _converted(self, column: Column, charset: str) -> Column:
        kind = column.type
        if kind.endswith("text") and character_width(column.charset) < character_width(charset):
            kind = enlarged(kind, column.charset, charset)
            return msgspec.structs.replace(column, charset=charset, type=kind, raw_type=kind)
        return msgspec.structs.replace(column, charset=charset)

    def set_visible(self, name: str, *, visible: bool) -> None:
        """Show or hide a column."""
        for place, column in enumerate(self._columns):
            if column.name.lower() == name.lower():
                self._columns[place] = msgspec.structs.replace(column, invisible=not visible)

    # --- indexes --------------------------------------------------------------------------------------------------

    def add_keys_of(self, definitions: Iterable[Definition]) -> None:
        """Add the keys that definitions of columns bring along."""
        for definition in definitions:
            if definition.primary:
                self.add_primary_key([definition.name])
            if definition.unique:
                self.add_index("", [definition.name])

    def add_primary_key(self, columns: list[str]) -> None:
        """Add it. Raises CannotApply if there is one."""
        if self._indexes.get(_PRIMARY):
            raise CannotApply("a second primary key")
        self._indexes[_PRIMARY] = columns

    def add_index(self, name: str, columns: list[str]) -> None:
        """Add an index, named after its first column if it has no name."""
        base = name or columns[0] or "functional_index"
        number = 2
        name = name or base
        while name in self._indexes:
            name, number = f"{base}_{number}", number + 1
        self._indexes[name] = columns

    def has_index(self, name: str) -> bool:
        """Say whether there is an index of this name."""
        return name in self._indexes

    def drop_index(self, name: str) -> None:
        """Drop an index; one that is not known, like an index over expressions, changes nothing here."""
        self._indexes.pop(_PRIMARY if name.upper() == _PRIMARY else name, None)

    def rename_index(self, old: str, new: str) -> None:
        """Rename an index."""
        if old in self._indexes:
            self._indexes[new] = self._indexes.pop(old)
