"""The grammar of a column's definition in CREATE TABLE and ALTER TABLE."""

from dataclasses import replace

from databus_changes.ddl.charset_clause import read_charset, read_collation
from databus_changes.ddl.datatype import LABELLED, NUMBERS, read_type
from databus_changes.ddl.definition import ColumnDefinition
from databus_changes.ddl.keys import skip_check, skip_reference
from databus_changes.ddl.reader import TokenReader
from databus_core.errors import CannotApply

_NATIONAL_CHARSET = "utf8mb3"


def read_column(tokens: TokenReader) -> ColumnDefinition:
    """Read a name, a type and its attributes, up to a word that does not belong to a column."""
    return read_definition(tokens, tokens.name())


def read_definition(tokens: TokenReader, name: str) -> ColumnDefinition:
    """Read the definition of a column whose name has been read."""
    keyword = tokens.next
    column = ColumnDefinition(name=name, type=read_type(tokens))
    if column.type in {"boolean", "json"}:
        column.declared = keyword
    if column.type in LABELLED:
        column.values = _labels(tokens)
    elif column.type not in {"boolean", "serial"} and tokens.take("("):
        column.arguments = _numbers(tokens)
    if column.type == "boolean":
        column.type, column.arguments = "tinyint", (1,)
    elif column.type == "serial":
        column = replace(column, type="bigint", unsigned=True, nullable=False, auto_increment=True, unique=True)
    elif column.type.startswith("national "):
        column = replace(column, type=column.type.removeprefix("national "), charset=_NATIONAL_CHARSET)
    if column.type in {"varchar", "varbinary"} and not column.arguments:
        raise tokens.unexpected()
    while _attribute(tokens, column):
        pass
    if column.unsigned and column.type not in NUMBERS:
        raise CannotApply(f"column {name} is UNSIGNED but not numeric")
    if tokens.take("FIRST"):
        column.after = ""
    elif tokens.take("AFTER"):
        column.after = tokens.name()
    return column


def _numbers(tokens: TokenReader) -> tuple[int, ...]:
    numbers = [tokens.number()]
    while tokens.take(","):
        numbers.append(tokens.number())
    tokens.expect(")")
    return tuple(numbers)


def _labels(tokens: TokenReader) -> tuple[str, ...]:
    tokens.expect("(")
    labels = [tokens.string()]
    while tokens.take(","):
        labels.append(tokens.string())
    tokens.expect(")")
    return tuple(label.rstrip(" ") for label in labels)  # the server stores labels without trailing spaces


def _attribute(tokens: TokenReader, column: ColumnDefinition) -> bool:
    """Read one attribute into the column; return False if the next token does not begin an attribute."""
    return _type_attribute(tokens, column) or _value_attribute(tokens, column) or _column_option(tokens, column)


def _type_attribute(tokens: TokenReader, column: ColumnDefinition) -> bool:
    if charset := read_charset(tokens):
        column.charset = charset
    elif collation := read_collation(tokens):
        column.collation = collation
    elif tokens.take("UNSIGNED"):
        column.unsigned = True
    elif tokens.take("ZEROFILL"):
        column.unsigned = column.zerofill = True
    elif tokens.take("ASCII"):
        column.charset = "latin1"
    elif tokens.take("UNICODE"):
        column.charset = "ucs2"
    elif tokens.take("BYTE"):
        column.charset = "binary"
    elif tokens.take("COMPRESSED"):
        column.compressed = True
        if tokens.take("="):
            tokens.skip()
    elif tokens.take("SRID") or tokens.take("REF_SYSTEM_ID"):
        tokens.take("=")
        tokens.number()
    else:
        return tokens.take("SIGNED") or tokens.take("BINARY")  # BINARY selects a collation
    return True


def _value_attribute(tokens: TokenReader, column: ColumnDefinition) -> bool:
    if tokens.take("NOT", "NULL"):
        column.nullable = False
    elif tokens.take("NULL"):
        column.nullable = True
    elif tokens.take("AUTO_INCREMENT"):
        column.auto_increment, column.nullable = True, False  # until a later NULL
    elif tokens.take("SERIAL", "DEFAULT", "VALUE"):
        column.auto_increment, column.unique, column.nullable = True, True, False
    elif tokens.take("DEFAULT"):
        column.default, column.computes_default = tokens.literal()
    elif tokens.take("ON", "UPDATE"):
        tokens.skip_value()
    elif tokens.take("GENERATED", "ALWAYS", "AS") or tokens.take("AS"):
        if tokens.next != "(":  # ROW START or ROW END, in a system-versioned table
            raise tokens.unexpected()
        tokens.skip()
        column.generated = column.virtual = True
    elif tokens.take("STORED") or tokens.take("PERSISTENT"):
        column.virtual = False
    else:
        return tokens.take("VIRTUAL")
    return True


def _column_option(tokens: TokenReader, column: ColumnDefinition) -> bool:
    if tokens.take("PRIMARY", "KEY") or tokens.take("KEY"):
        column.primary = True
    elif tokens.take("UNIQUE"):
        tokens.take("KEY")
        column.unique = True
    elif tokens.take("INVISIBLE"):
        column.invisible = True
    elif tokens.take("COMMENT"):
        tokens.string()
    elif tokens.next in {"COLUMN_FORMAT", "STORAGE", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE"}:
        tokens.skip()
        tokens.take("=")
        tokens.skip()
    elif tokens.take("REFERENCES"):
        skip_reference(tokens)
    elif tokens.next in {"CONSTRAINT", "CHECK"}:
        skip_check(tokens)
    else:
        return tokens.take("VISIBLE") or tokens.take("NOT", "SECONDARY")
    return True
