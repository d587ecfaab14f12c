"""A column's type in Kafka Connect, its type in the lake, and the SQL that converts its values.

A value that does not fit ends the query: nothing becomes NULL that is not null in the record.
"""

from base64 import b64encode
from dataclasses import dataclass

import msgspec

from databus_core.errors import InvalidSettings
from databus_spark.alignment import PLACE, texts
from databus_spark.types import TypeOptions, identifier, literal, microseconds


class Field(msgspec.Struct, frozen=True):
    """A field of a Connect schema, as JsonConverter writes it."""

    type: str
    field: str = ""
    name: str = ""
    parameters: dict[str, str] = {}
    fields: tuple["Field", ...] = ()


@dataclass(frozen=True)
class ConnectType:
    """How values of a type of Connect are read."""

    #: SQL type as which they are parsed from JSON
    parsed: str
    #: their type in the lake
    lake: str
    #: a type of MySQL that has the same type in the lake, if there is one
    raw: str
    #: SQL that converts the parsed value `{0}`, to NULL if it does not fit
    convert: str = "{0}"


_CONNECT, _TIME = "org.apache.kafka.connect.data.", "io.debezium.time."
_DECIMAL, _BITS, _JSON = f"{_CONNECT}Decimal", "io.debezium.data.Bits", "io.debezium.data.Json"
_INTEGER = ConnectType("bigint", "bigint", "bigint")
_INTEGERS = ("int8", "int16", "int32", "int64")
_PLAIN = dict.fromkeys(_INTEGERS, _INTEGER) | {
    "boolean": ConnectType("boolean", "boolean", "tinyint(1)"),
    "float": ConnectType("float", "float", "float"),
    "double": ConnectType("double", "double", "double"),
    "string": ConnectType("string", "string", "longtext"),
    "bytes": ConnectType("binary", "binary", "longblob"),
}


def _moment(unit: str, count: str = "{0}") -> ConnectType:
    moment = f"try_add(timestamp_ntz'1970-01-01 00:00:00', try_multiply(interval '{unit}' second, {count}))"
    return ConnectType("bigint", "timestamp_ntz", "datetime(6)", moment)


_DAYS = ConnectType("int", "date", "date", "date_from_unix_date({0})")
_MICROS_OF_NANOS = "if({0} % 1000 = 0, {0} div 1000, null)"
_UNZONED = "rtrim('Z', {0})"
_ZONED = "if({0} rlike 'T.*(Z|[+-][0-9]{{2}}:[0-9]{{2}})$', try_cast({0} as timestamp), null)"


def _reversed(digits: str) -> str:
    """Build the SQL that reverses bytes in hexadecimal."""
    return f"regexp_replace(reverse({digits}), '(.)(.)', '$2$1')"


_SRID = _reversed("lpad(hex(coalesce({0}.srid, 0) & 4294967295), 8, '0')")
#: as the lake has geometries: four bytes of SRID, little-endian, then WKB
_GEOMETRY = ConnectType("struct<wkb: binary, srid: bigint>", "binary", "geometry", f"concat(unhex({_SRID}), {{0}}.wkb)")
#: semantic types whose values are not those of the plain type
_NAMED = {
    f"{_TIME}Date": _DAYS,
    f"{_CONNECT}Date": _DAYS,
    f"{_TIME}IsoDate": ConnectType("string", "date", "date", f"try_cast({_UNZONED} as date)"),
    f"{_TIME}Timestamp": _moment("0.001"),
    f"{_CONNECT}Timestamp": _moment("0.001"),
    f"{_TIME}MicroTimestamp": _moment("0.000001"),
    f"{_TIME}NanoTimestamp": _moment("0.000001", _MICROS_OF_NANOS),
    f"{_TIME}IsoTimestamp": ConnectType(
        "string", "timestamp_ntz", "datetime(6)", f"try_cast({_UNZONED} as timestamp_ntz)"
    ),
    f"{_TIME}ZonedTimestamp": ConnectType("string", "timestamp", "timestamp(6)", _ZONED),
    "io.debezium.data.geometry.Geometry": _GEOMETRY,
    "io.debezium.data.geometry.Point": _GEOMETRY,
    "io.debezium.data.FloatVector": ConnectType("array<float>", "array<float>", "vector"),
}
#: semantic type of a TIME → type of the parsed value, SQL of its microseconds
_TIMES = {
    f"{_TIME}MicroTime": ("bigint", "{0}"),
    f"{_TIME}NanoTime": ("bigint", _MICROS_OF_NANOS),
    f"{_CONNECT}Time": ("bigint", "try_multiply({0}, 1000)"),
    f"{_TIME}IsoTime": ("string", microseconds(_UNZONED)),
}
_SPECIAL = [_DECIMAL, _BITS, *_NAMED, *_TIMES]

#: the value of a column that the binlog did not have
_UNAVAILABLE = b"__debezium_unavailable_value"
_UNAVAILABLE_BYTES = f"X'{_UNAVAILABLE.hex()}'"
#: of bytes that the connector writes as text, too
_UNAVAILABLE_TEXTS = ", ".join(
    literal(text) for text in (_UNAVAILABLE.decode(), b64encode(_UNAVAILABLE).decode(), _UNAVAILABLE.hex())
)
_LACKS = "has no value, because the binlog lacked it: set binlog_row_image=FULL, and begin with a new snapshot"
_MISFIT = "has a value that does not fit its schema: leave the record out, by its offset"
#: of a BIGINT UNSIGNED, whose schema does not show it
_UNKNOWN_PRECISION = 38
_PRECISION, _SCALE, _LENGTH = "connect.decimal.precision", "scale", "length"


def connect_type(field: Field, types: TypeOptions) -> ConnectType:
    """Return how a column is read. Raises InvalidSettings if Spark has no type for it."""
    if field.name == _DECIMAL:
        precision, scale = _digits(field)
        if precision > 38:
            raise InvalidSettings(
                f"column {field.field} has {precision} digits, and Spark's decimals at most 38: "
                "set decimal.handling.mode=string in the connector (decimal: string in a route)"
            )
        kind = f"decimal({precision},{scale})"
        return ConnectType("binary", kind, kind, f"try_cast({_unscaled('{0}')} || 'E-{scale}' as {kind})")
    if field.name == _BITS:
        kind = "decimal(20,0)" if _length(field) == 64 else "bigint"
        number = f"if(octet_length({{0}}) <= 8, conv('0' || {_reversed('hex({0})')}, 16, 10), null)"
        return ConnectType("binary", kind, f"bit({_length(field)})", f"try_cast({number} as {kind})")
    if field.name == _JSON:
        is_text = types.json_columns == "string"
        return ConnectType("string", types.json_columns, "json", "{0}" if is_text else "try_parse_json({0})")
    if found := _TIMES.get(field.name):
        parsed, count = found
        as_text = types.time_columns == "string"
        return ConnectType(parsed, "string" if as_text else "bigint", "time(6)", _time(count) if as_text else count)
    if known := _NAMED.get(field.name) or _PLAIN.get(field.type):
        return known
    raise InvalidSettings(f"column {field.field} has the type {field.name or field.type}: leave it out of the topic")


def converted(field: Field, value: str, types: TypeOptions) -> str:
    """Build the SQL of a column from its parsed value. It ends the query at a value that does not fit."""
    known = connect_type(field, types)
    found = value
    if known.convert != "{0}":
        found = f"coalesce({known.convert.format(value)}, if({value} is null, null, {_error(field, _MISFIT)}))"
    if field.name in _SPECIAL or known.parsed not in ("string", "binary"):
        return found
    lacks = f"{value} in ({_UNAVAILABLE_TEXTS})" if known.parsed == "string" else f"{value} = {_UNAVAILABLE_BYTES}"
    return f"if({lacks}, {_error(field, _LACKS)}, {found})"


def _error(field: Field, text: str) -> str:
    return f"raise_error(concat({PLACE}, {literal(f': column {field.field} {text}')}))"


def fits(field: Field, other: str, types: TypeOptions) -> str:
    """Build the SQL condition of whether values of the same column in another schema, `other`, are read alike."""
    if field.name in _SPECIAL or connect_type(field, types).lake == "variant":
        same = f"{other}.type = {literal(field.type)} and {other}.name = {literal(field.name)}"
        parameter = f"cast({other}.parameters[{{}}] as int)".format
        if field.name == _DECIMAL:
            precision, scale = _digits(field)
            same += f" and coalesce({parameter(literal(_PRECISION))}, {_UNKNOWN_PRECISION}) <= {precision}"
            same += f" and {parameter(literal(_SCALE))} = {scale}"
        if field.name == _BITS:
            same += f" and {parameter(literal(_LENGTH))} <= {_length(field)}"
        return f"coalesce({same}, false)"
    plain = _INTEGERS if field.type in _INTEGERS else (field.type,)
    special = f"array_contains({texts(_SPECIAL)}, coalesce({other}.name, ''))"
    return f"coalesce(array_contains({texts(plain)}, {other}.type) and not {special}, false)"


def _digits(field: Field) -> tuple[int, int]:
    return int(field.parameters.get(_PRECISION, _UNKNOWN_PRECISION)), int(field.parameters[_SCALE])


def _length(field: Field) -> int:
    return int(field.parameters[_LENGTH])


def _unscaled(value: str) -> str:
    """Build the SQL that converts a big-endian two's complement number to text, NULL if it has more than 38 digits."""
    is_negative = f"hex({value}) >= '8'"
    # of a negative number the complement, which is -number - 1: so no part of the sum has more than 38 digits
    inverted = f"if({is_negative}, translate(hex({value}), '0123456789ABCDEF', 'FEDCBA9876543210'), hex({value}))"
    padded = f"if(octet_length({value}) between 1 and 16, lpad({inverted}, 32, '0'), null)"
    high, low = (f"cast(conv(substring({padded}, {start}, 16), 16, 10) as decimal(20,0))" for start in (1, 17))
    size = f"try_add(try_multiply({high}, 18446744073709551616), {low})"
    # Spark's negation would round to 34 digits.
    return f"if({is_negative}, '-' || cast(try_add({size}, 1) as string), cast({size} as string))"


def _time(count: str) -> str:
    """Build the SQL that converts microseconds to a TIME's text, with a fraction of six digits if it is not zero."""
    seconds = f"abs({count}) div 1000000"
    parts = f"{seconds} div 3600, {seconds} div 60 % 60, {seconds} % 60"
    whole = f"format_string('%02d:%02d:%02d', {parts})"
    fraction = f"if({count} % 1000000 = 0, '', format_string('.%06d', abs({count}) % 1000000))"
    return f"if({count} is null, null, concat(if({count} < 0, '-', ''), {whole}, {fraction}))"


def parsed_fields(columns: tuple[Field, ...], types: TypeOptions) -> str:
    """Build the SQL type as which a row image is parsed."""
    return f"struct<{', '.join(f'{identifier(each.field)}: {connect_type(each, types).parsed}' for each in columns)}>"
