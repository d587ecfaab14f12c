"""Data types: every name that a statement may use, and how information_schema prints the type."""

from databus_changes.charsets import character_width
from databus_changes.ddl.dialect import Dialect
from databus_changes.ddl.reader import TokenReader
from databus_core.errors import CannotApply

#: DATA_TYPE → its synonyms in statements
_SYNONYMS = {
    "tinyint": "INT1", "smallint": "INT2", "mediumint": "INT3, MIDDLEINT", "int": "INT4, INTEGER", "bigint": "INT8",
    "decimal": "DEC, NUMERIC, FIXED", "float": "FLOAT4", "double": "DOUBLE PRECISION, FLOAT8, REAL",
    "bit": "", "year": "", "date": "", "time": "", "datetime": "", "timestamp": "",
    "char": "CHARACTER", "varchar": "CHAR VARYING, CHARACTER VARYING, VARCHARACTER", "binary": "", "varbinary": "",
    "tinyblob": "", "blob": "", "mediumblob": "LONG VARBINARY", "longblob": "",
    "tinytext": "", "text": "", "longtext": "",
    "mediumtext": "LONG, LONG VARCHAR, LONG CHAR VARYING, LONG CHARACTER VARYING, LONG VARCHARACTER",
    "enum": "", "set": "", "json": "", "vector": "", "inet4": "", "inet6": "", "uuid": "",
    "geometry": "", "point": "", "linestring": "", "polygon": "", "multipoint": "", "multilinestring": "",
    "multipolygon": "", "geometrycollection": "GEOMCOLLECTION",
    "boolean": "BOOL", "serial": "",
    "national char": "NCHAR, NATIONAL CHARACTER",
    "national varchar": "NVARCHAR, NCHAR VARCHAR, NCHAR VARYING, NATIONAL CHAR VARYING, NATIONAL CHARACTER VARYING,"
    " NATIONAL VARCHARACTER",
}  # fmt: skip
#: phrases → DATA_TYPE, the longer ones first
_PHRASES = dict(
    sorted(
        (
            (tuple(phrase.split()), kind)
            for kind, others in _SYNONYMS.items()
            for phrase in (kind.upper(), *filter(None, others.split(", ")))
        ),
        key=lambda item: -len(item[0]),
    )
)
#: type → default display width, signed and unsigned
_INTEGERS = {"tinyint": (4, 3), "smallint": (6, 5), "mediumint": (9, 8), "int": (11, 10), "bigint": (20, 20)}
NUMBERS = _INTEGERS.keys() | {"decimal", "float", "double"}
#: largest size in bytes → the type without and with a character set
_BLOBS = {
    2**8 - 1: ("tinyblob", "tinytext"),
    2**16 - 1: ("blob", "text"),
    2**24 - 1: ("mediumblob", "mediumtext"),
    2**32 - 1: ("longblob", "longtext"),
}
_TEXTS = {text for _, text in _BLOBS.values()}
#: type → default length
_LENGTHS = {"char": 1, "binary": 1, "bit": 1, "vector": 2048}
LABELLED = {"enum", "set"}
#: types that have a character set
TEXT = {"char", "varchar"} | _TEXTS | LABELLED
#: largest precision in bits of a FLOAT(p); above it, the type is DOUBLE
_FLOAT_BITS = 24


def read_type(tokens: TokenReader) -> str:
    """Read a type's name; `boolean`, `serial` and the national types are returned as such."""
    for phrase, kind in _PHRASES.items():
        if tokens.take(*phrase):
            return kind
    raise tokens.unexpected()


def data_type(kind: str, arguments: tuple[int, ...], charset: str, dialect: Dialect) -> str:
    """Return DATA_TYPE: length, precision or character set turn some types into others."""
    if kind == "float" and len(arguments) == 1:
        return "float" if arguments[0] <= _FLOAT_BITS else "double"
    if kind == "geometrycollection" and dialect.flavor == "mysql":
        return "geomcollection"
    if kind == "json" and dialect.flavor == "mariadb":
        return "longtext"
    if kind in TEXT and charset == "binary":
        if kind in LABELLED:
            raise CannotApply("it defines an ENUM or SET with binary labels")
        kind = {"char": "binary", "varchar": "varbinary"}.get(kind) or _blob(kind)
    if kind in {"text", "blob"} and arguments and arguments[0]:
        size = arguments[0] * (character_width(charset) if kind == "text" else 1)
        names = next((names for limit, names in _BLOBS.items() if size <= limit), _BLOBS[max(_BLOBS)])
        return names[kind == "text"]
    return kind


def _blob(text: str) -> str:
    return next(blob for blob, its_text in _BLOBS.values() if its_text == text)


def larger_text(text: str) -> str:
    """Return the next larger TEXT type; LONGTEXT is the largest."""
    texts = [its_text for _, its_text in _BLOBS.values()]
    return texts[min(texts.index(text) + 1, len(texts) - 1)]


def column_type(kind: str, arguments: tuple[int, ...], *, unsigned: bool, zerofill: bool, dialect: Dialect) -> str:
    """Return COLUMN_TYPE for all types except ENUM and SET."""
    signs = " unsigned" * unsigned + " zerofill" * zerofill
    return kind + _size(kind, arguments, dialect, unsigned=unsigned, zerofill=zerofill) + signs


def _size(kind: str, arguments: tuple[int, ...], dialect: Dialect, *, unsigned: bool, zerofill: bool) -> str:
    first = arguments[0] if arguments else None
    match kind:
        case "decimal":
            return f"({first or 10},{arguments[1] if len(arguments) > 1 else 0})"
        case "float" | "double" if len(arguments) > 1:
            return f"({first},{arguments[1]})"
        case "time" | "datetime" | "timestamp":
            shown = first or None
        case "char" | "binary" | "bit" | "vector" | "varchar" | "varbinary":
            shown = first if arguments else _LENGTHS[kind]
        case "year":
            shown = (first or 4) if dialect.integer_widths else None
        case "tinyint" | "smallint" | "mediumint" | "int" | "bigint":
            width = first or _INTEGERS[kind][unsigned]
            # MySQL 8.0.19 and later still print the width of TINYINT(1), and any width with ZEROFILL.
            is_printed = dialect.integer_widths or zerofill or (kind, width, unsigned) == ("tinyint", 1, False)
            shown = width if is_printed else None
        case _:
            shown = None
    return "" if shown is None else f"({shown})"
