"""A column's definition in CREATE TABLE and ALTER TABLE."""

from dataclasses import dataclass, field, replace

from databus.errors import CannotApply
from databus.events import Column
from databus_changes.catalog import charset_name, charset_of
from databus_changes.ddl.datatype import LABELLED, NUMBERS, TEXT, declared, read_type, spelled
from databus_changes.ddl.dialect import Dialect
from databus_changes.ddl.words import Words

_NATIONAL = "utf8mb3"
_BEFORE_NUMBERS = {"-", "+", "."}


@dataclass(kw_only=True)
class Definition:
    """What a statement says of a column, before the table's character set is known."""

    name: str
    type: str = ""
    arguments: tuple[int, ...] = ()
    values: tuple[str, ...] = ()
    charset: str = ""
    collation: str = ""
    unsigned: bool = False
    zerofill: bool = False
    nullable: bool | None = None
    auto_increment: bool = False
    generated: bool = False
    invisible: bool = False
    compressed: bool = False
    primary: bool = False
    unique: bool = False
    #: what stands behind FIRST (empty) or AFTER; None without either
    after: str | None = field(default=None)

    def column(self, default_charset: str, dialect: Dialect) -> Column:
        """Make the column of a table with this default character set. Raises CannotApply if that matters and is ""."""
        charset = self._charset(default_charset, dialect)
        kind = declared(self.type, self.arguments, charset, dialect)
        if kind in LABELLED:
            raw_type = f"{kind}({','.join(map(_quoted, self.values))})"
        else:
            raw_type = spelled(
                kind, self.arguments, unsigned=self.unsigned, zerofill=self.zerofill, dialect=dialect
            ) + (" /*M!100301 COMPRESSED*/" if self.compressed else "")
        return Column(
            name=self.name,
            type=kind,
            raw_type=raw_type,
            nullable=self._nullable(kind, dialect),
            unsigned=self.unsigned,
            charset=charset if kind in TEXT else "",
            values=self.values,
            auto_increment=self.auto_increment,
            generated=self.generated,
            invisible=self.invisible,
        )

    def _charset(self, default: str, dialect: Dialect) -> str:
        if self.type == "json" and dialect.flavor == "mariadb":
            return "utf8mb4"
        if self.type not in TEXT:
            return ""
        charset = self.charset or charset_of(self.collation) or default
        if not charset:
            raise CannotApply(f"the character set of column {self.name} is left to a default that is not known")
        return charset

    def _nullable(self, kind: str, dialect: Dialect) -> bool:
        if self.primary or self.auto_increment:
            return False
        if self.nullable is None:
            return kind != "timestamp" or dialect.explicit_timestamps
        return self.nullable


def read_column(words: Words) -> Definition:
    """Read a name, a type and everything that may follow, up to a word that belongs to no column."""
    return read_definition(words, words.name())


def read_definition(words: Words, name: str) -> Definition:
    """Read the definition of a column whose name has been read."""
    column = Definition(name=name, type=read_type(words))
    if column.type in LABELLED:
        column.values = _labels(words)
    elif column.type not in {"boolean", "serial"} and words.take("("):
        column.arguments = _numbers(words)
    if column.type == "boolean":
        column.type, column.arguments = "tinyint", (1,)
    elif column.type == "serial":
        column = replace(column, type="bigint", unsigned=True, nullable=False, auto_increment=True, unique=True)
    elif column.type.startswith("national "):
        column = replace(column, type=column.type.removeprefix("national "), charset=_NATIONAL)
    if column.type in {"varchar", "varbinary"} and not column.arguments:
        raise words.refusal()
    while _attribute(words, column):
        pass
    if column.unsigned and column.type not in NUMBERS:
        raise CannotApply(f"column {name} is UNSIGNED but no number")
    if words.take("FIRST"):
        column.after = ""
    elif words.take("AFTER"):
        column.after = words.name()
    return column


def read_charset(words: Words) -> str | None:
    """Read `CHARACTER SET [=] x` if it comes next; DEFAULT as a name is given as it is."""
    if not (words.take("CHARACTER", "SET") or words.take("CHARSET") or words.take("CHAR", "SET")):
        return None
    words.take("=")
    return charset_name(_name_or_text(words))


def read_collation(words: Words) -> str | None:
    """Read `COLLATE [=] x` if it comes next."""
    if not words.take("COLLATE"):
        return None
    words.take("=")
    return _name_or_text(words).lower()


def _name_or_text(words: Words) -> str:
    try:
        return words.name()
    except CannotApply:
        return words.text()


def _numbers(words: Words) -> tuple[int, ...]:
    numbers = [words.number()]
    while words.take(","):
        numbers.append(words.number())
    words.expect(")")
    return tuple(numbers)


def _labels(words: Words) -> tuple[str, ...]:
    words.expect("(")
    labels = [words.text()]
    while words.take(","):
        labels.append(words.text())
    words.expect(")")
    return tuple(label.rstrip(" ") for label in labels)  # so the server keeps them


def _quoted(label: str) -> str:
    return "'" + label.replace("'", "''") + "'"


def _attribute(words: Words, column: Definition) -> bool:
    """Take one attribute in; False at what is none."""
    return _of_the_type(words, column) or _of_its_value(words, column) or _of_the_table(words, column)


def _of_the_type(words: Words, column: Definition) -> bool:
    if charset := read_charset(words):
        column.charset = charset
    elif collation := read_collation(words):
        column.collation = collation
    elif words.take("UNSIGNED"):
        column.unsigned = True
    elif words.take("ZEROFILL"):
        column.unsigned = column.zerofill = True
    elif words.take("ASCII"):
        column.charset = "latin1"
    elif words.take("UNICODE"):
        column.charset = "ucs2"
    elif words.take("BYTE"):
        column.charset = "binary"
    elif words.take("COMPRESSED"):
        column.compressed = True
        if words.take("="):
            words.skip()
    elif words.take("SRID") or words.take("REF_SYSTEM_ID"):
        words.take("=")
        words.number()
    else:
        return words.take("SIGNED") or words.take("BINARY")  # BINARY is a collation of the character set
    return True


def _of_its_value(words: Words, column: Definition) -> bool:
    if words.take("NOT", "NULL"):
        column.nullable = False
    elif words.take("NULL"):
        column.nullable = True
    elif words.take("AUTO_INCREMENT"):
        column.auto_increment = True
    elif words.take("SERIAL", "DEFAULT", "VALUE"):
        column.auto_increment = column.unique = True
    elif words.take("DEFAULT") or words.take("ON", "UPDATE"):
        _skip_value(words)
    elif words.take("GENERATED", "ALWAYS", "AS") or words.take("AS"):
        if words.next != "(":  # ROW START and ROW END
            raise words.refusal()
        words.skip()
        column.generated = True
    else:
        return words.take("VIRTUAL") or words.take("STORED") or words.take("PERSISTENT")
    return True


def _of_the_table(words: Words, column: Definition) -> bool:
    if words.take("PRIMARY", "KEY") or words.take("KEY"):
        column.primary = True
    elif words.take("UNIQUE"):
        words.take("KEY")
        column.unique = True
    elif words.take("INVISIBLE"):
        column.invisible = True
    elif words.take("COMMENT"):
        words.text()
    elif words.next in {"COLUMN_FORMAT", "STORAGE", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE"}:
        words.skip()
        words.take("=")
        words.skip()
    elif words.take("REFERENCES"):
        skip_reference(words)
    elif words.next in {"CONSTRAINT", "CHECK"}:
        skip_check(words)
    else:
        return words.take("VISIBLE")
    return True


def _skip_value(words: Words) -> None:
    """Step over a literal, an expression in parentheses, or a function's call."""
    while words.next in _BEFORE_NUMBERS:
        words.skip()
    introduced = words.next.startswith("_")
    parenthesis = words.next == "("
    words.skip()
    if introduced and words.next == "?":
        words.skip()
    if not parenthesis and words.next == "(":
        words.skip()


def skip_reference(words: Words) -> None:
    """Step over what follows REFERENCES."""
    words.qualified("")
    if words.next == "(":
        words.skip()
    while words.next in {"MATCH", "ON"}:
        if words.take("MATCH"):
            words.skip()
            continue
        words.skip()
        if not (words.take("DELETE") or words.take("UPDATE")):
            raise words.refusal()
        if not (words.take("SET", "NULL") or words.take("SET", "DEFAULT") or words.take("NO", "ACTION")):
            words.skip()  # RESTRICT, CASCADE


def skip_check(words: Words) -> None:
    """Step over `[CONSTRAINT [name]] CHECK (…) [[NOT] ENFORCED]`."""
    if words.take("CONSTRAINT") and words.next != "CHECK":
        words.name()
    words.expect("CHECK")
    if words.next != "(":
        raise words.refusal()
    words.skip()
    words.take("NOT", "ENFORCED") or words.take("ENFORCED")
