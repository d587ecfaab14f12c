"""A column as CREATE TABLE or ALTER TABLE defines it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from databus_changes.charsets import character_width, charset_of
from databus_changes.ddl.datatype import LABELLED, TEXT, column_type, data_type, larger_text
from databus_changes.ddl.dialect import Dialect
from databus_core.errors import CannotApply
from databus_core.events import Column

_STRINGS = {"char", "varchar", "binary", "varbinary"}
_MAX_INDEX_BYTES = 3072


@dataclass(kw_only=True)
class ColumnDefinition:
    """A column as the statement defines it, before the table's default character set is known."""

    name: str
    type: str
    arguments: tuple[int, ...] = ()
    values: tuple[str, ...] = ()
    #: as in `Column`, but also JSON where the server stores JSON
    declared: str = ""
    charset: str = ""
    collation: str = ""
    unsigned: bool = False
    zerofill: bool = False
    #: None if the statement has neither NULL nor NOT NULL
    nullable: bool | None = None
    auto_increment: bool = False
    generated: bool = False
    virtual: bool = False
    invisible: bool = False
    compressed: bool = False
    primary: bool = False
    unique: bool = False
    #: the text of the literal that is the default; None if that is NULL, or if there is none
    default: str | None = None
    #: whether the default is not a literal whose text is certain
    computes_default: bool = False
    #: the column before this one: "" for FIRST, None if the statement gives no position
    after: str | None = None

    @property
    def named_charset(self) -> str:
        """The character set that the definition names; "" if it has none, or that of the table."""
        return "utf8mb4" if self.type == "json" else self.charset or charset_of(self.collation)

    def column(self, default_charset: str, dialect: Dialect) -> Column:
        """Return the column.

        Raises CannotApply if the character set is needed but not known (""), or is binary for an ENUM or SET.
        """
        charset = self._charset(default_charset, dialect)
        kind = data_type(self.type, self.arguments, charset, dialect)
        return Column(
            name=self.name,
            type=kind,
            raw_type=self._column_type(kind, dialect),
            nullable=self._nullable(kind, dialect),
            unsigned=self.unsigned,
            charset=charset if kind in TEXT else "",
            values=self.values,
            auto_increment=self.auto_increment,
            generated=self.generated,
            virtual=self.virtual,
            invisible=self.invisible,
            declared="" if kind == "json" else self.declared,
        )

    def _column_type(self, kind: str, dialect: Dialect) -> str:
        if kind in LABELLED:
            return f"{kind}({','.join(map(_quoted, self.values))})"
        text = column_type(kind, self.arguments, unsigned=self.unsigned, zerofill=self.zerofill, dialect=dialect)
        return f"{text} /*M!100301 COMPRESSED*/" if self.compressed else text

    def _charset(self, default: str, dialect: Dialect) -> str:
        if self.type == "json" and dialect.flavor == "mariadb":
            return "utf8mb4"
        if self.type not in TEXT:
            return ""
        charset = self.charset or charset_of(self.collation) or default
        if not charset:
            raise CannotApply(f"column {self.name} has the default character set, which is not known")
        return charset

    def _nullable(self, kind: str, dialect: Dialect) -> bool:
        if self.primary:
            return False
        if self.nullable is None:
            return kind != "timestamp" or dialect.explicit_timestamps
        return self.nullable


def convert_column(column: Column, charset: str) -> Column:
    """Return a column after CONVERT TO CHARACTER SET. A TEXT type becomes larger if the new characters are longer."""
    if column.type not in TEXT:
        return column
    kind = column.type
    if kind.endswith("text") and character_width(column.charset) < character_width(charset):
        kind = larger_text(kind)
        return msgspec.structs.replace(column, charset=charset, type=kind, raw_type=kind)
    return msgspec.structs.replace(column, charset=charset)


def is_hashed(columns: Iterable[Column]) -> bool:
    """Return whether MariaDB has only the hash of these columns in a unique index, because they may be too long."""
    return sum(map(_index_bytes, columns)) > _MAX_INDEX_BYTES


def _index_bytes(column: Column) -> int:
    """Return the size of a column in an index; 0 for a type of a few bytes."""
    if column.type.endswith(("text", "blob")):
        return _MAX_INDEX_BYTES + 1
    length = re.search(r"\((\d+)\)", column.raw_type)
    return int(length[1]) * character_width(column.charset) if length and column.type in _STRINGS else 0


def _quoted(label: str) -> str:
    return "'" + label.replace("'", "''") + "'"
