"""A minimal consumer of each format, which decodes messages to the canonical text of values (docs/reference/values.md).

Like a real consumer, it knows the columns of the tables. LOSSY lists the values that cannot be decoded from a format.
"""

import base64
import json
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from io import BytesIO
from ipaddress import ip_address
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from fastavro import parse_schema, schemaless_reader

from databus_core.events import Column

Columns: TypeAlias = Mapping[str, Column]
#: (table, count) → the columns of the table's version that has `count` columns; (table) → those of all its versions
ColumnLookup: TypeAlias = Callable[..., Columns]
Texts: TypeAlias = dict[str, bytes | None]
Line: TypeAlias = dict[str, Any]


class RowChange(NamedTuple):
    """A row before and after a change."""

    table: str
    before: Texts | None
    after: Texts | None


BINARY = {"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}
SPATIAL = {"geometry", "point", "linestring", "polygon", "geometrycollection"}
PACKED = {"vector", "uuid", "inet4", "inet6"}


class Loss(NamedTuple):
    """Values that a format changes or omits by design."""

    types: set[str]
    reason: str
    #: whether a value of these types is changed or omitted
    applies: Callable[[bytes], bool] = lambda _: True


def _impossible_date(value: bytes) -> bool:
    return value.startswith(b"0000") or b"-00" in value


_DEBEZIUM = Loss({"date", "datetime", "timestamp"}, "an impossible date is NULL or the epoch", _impossible_date)
#: the formats in which some values are lost; all others have every value of every type
LOSSY: dict[str, Loss] = {
    "debezium-json": _DEBEZIUM,
    "debezium-avro": _DEBEZIUM,
    "maxwell-json": Loss(SPATIAL, "WKT has no SRID"),
}


class Number(str):
    """The text of a number in JSON."""


def json_line(line: bytes) -> Line:
    """Decode a line of JSON; numbers stay text."""
    decoded: Line = json.loads(line, parse_int=Number, parse_float=Number)
    return decoded


# --- databus ----------------------------------------------------------------------------------------------------------


def databus(lines: Iterable[Line], _: ColumnLookup) -> Iterator[RowChange]:
    for value in (line["value"] for line in lines if "Rows" in line["value"]):
        table = value["Table"]
        names = [column["Name"] for column in table["Columns"]]
        rows = [
            dict(zip(names, [None if cell is None else base64.b64decode(cell) for cell in row], strict=True))
            for row in value["Rows"]
        ]
        match value["Action"]:
            case "insert":
                yield from (RowChange(table["Name"], None, row) for row in rows)
            case "delete":
                yield from (RowChange(table["Name"], row, None) for row in rows)
            case "update":
                yield from (RowChange(table["Name"], *pair) for pair in zip(rows[::2], rows[1::2], strict=True))


# --- canal, and DIP ---------------------------------------------------------------------------------------------------


def canal_json(lines: Iterable[Line], columns: ColumnLookup) -> Iterator[RowChange]:
    for value in (line["value"] for line in lines if not line["value"]["isDdl"]):
        known = columns(value["table"])
        for index, data in enumerate(value["data"]):
            row = _each(known, data, canal_text)
            match value["type"]:
                case "INSERT":
                    yield RowChange(value["table"], None, row)
                case "DELETE":
                    yield RowChange(value["table"], row, None)
                case "UPDATE":
                    old = _each(known, value["old"][index], canal_text)
                    yield RowChange(value["table"], row | old, row)


def canal_protobuf(lines: Iterable[Line], columns: ColumnLookup) -> Iterator[RowChange]:
    from databus_messages.formats import canal_protocol_pb2 as protocol  # noqa: PLC0415 – other readers need no protobuf

    for line in lines:
        packet = protocol.Packet.FromString(base64.b64decode(line["value"]["base64"]))
        for message in protocol.Messages.FromString(packet.body).messages:
            entry = protocol.Entry.FromString(message)
            if entry.entryType != protocol.ROWDATA:
                continue
            table = entry.header.tableName

            def texts(cells: Iterable[Any], known: Columns) -> Texts | None:
                values = {cell.name: None if cell.isNull else cell.value for cell in cells}
                return _each(known, values, canal_text) if values else None

            for row in protocol.RowChange.FromString(entry.storeValue).rowDatas:
                known = columns(table)
                yield RowChange(table, texts(row.beforeColumns, known), texts(row.afterColumns, known))


def canal_text(column: Column, value: str) -> bytes:
    """Decode canal's text, in which each byte of a binary value is a character of ISO 8859-1."""
    if column.type in BINARY | SPATIAL | PACKED:
        return value.encode("latin-1")
    return value.encode()


def dip(lines: Iterable[Line], columns: ColumnLookup) -> Iterator[RowChange]:
    for value in (line["value"] for line in lines if "TYPE" in line["value"]):
        known = columns(value["TABLE"])
        before, after = (
            None if values is None else _each(known, values, dip_text)
            for values in (value["OLD_VALUES"], value["NEW_VALUES"])
        )
        yield RowChange(value["TABLE"], before, after)


def dip_text(column: Column, value: str) -> bytes:
    """Decode DIP's text: an ENUM or SET has labels, a binary value is base64."""
    if column.type in {"enum", "set"}:
        return _from_labels(column, value)
    return base64.b64decode(value) if column.type in BINARY | SPATIAL | PACKED else value.encode()


# --- TDSQL ------------------------------------------------------------------------------------------------------------


def tdsql(lines: Iterable[Line], columns: ColumnLookup) -> Iterator[RowChange]:
    for value in (line["value"] for line in lines if "field" in line["value"]):
        known = columns(value["table"], len(value["where"] or value["field"]))

        def texts(literals: list[str], known: Columns = known) -> Texts | None:
            values = zip(known, literals, strict=bool(literals))
            return {name: literal_text(known[name], literal) for name, literal in values} or None

        yield RowChange(value["table"], texts(value["where"]), texts(value["field"]))


def literal_text(column: Column, literal: str) -> bytes | None:
    """Decode an SQL literal in the dialect `mysqlbinlog` of databus_messages.formats.sql_literals."""
    if literal == "NULL":
        return None
    if literal.startswith("b'"):
        return b"%d" % int(literal[2:-1], 2)
    if not literal.startswith("'"):
        return literal.encode()
    text = _ESCAPED.sub(_character, literal[1:-1])
    if column.type in {"uuid", "inet4", "inet6"}:
        return _packed(column, text)
    return text.encode("latin-1" if column.type in BINARY | SPATIAL | PACKED else "utf-8")


_ESCAPED = re.compile(r"\\(?:x([0-9a-f]{2})|(.))")


def _character(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else {"n": "\n"}.get(found[2], found[2])


# --- Debezium ---------------------------------------------------------------------------------------------------------


def debezium_json(lines: Iterable[Line], columns: ColumnLookup) -> Iterator[RowChange]:
    return debezium((line["value"] for line in lines), columns)


def debezium_avro(lines: Iterable[Line], columns: ColumnLookup) -> Iterator[RowChange]:
    everything = list(lines)  # the schemas come last
    schemas = {int(line["id"]): parse_schema(json.loads(line["schema"])) for line in everything if "schema" in line}
    contents = (base64.b64decode(line["value"]["base64"]) for line in everything if line.get("value"))
    values = (schemaless_reader(BytesIO(data[5:]), schemas[int.from_bytes(data[1:5])]) for data in contents)
    return debezium(map(_as_json, values), columns)


def _as_json(value: Any) -> Any:
    """Replace bytes by base64, as in Debezium's JSON messages."""
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case dict():
            return {name: _as_json(part) for name, part in value.items()}
    return value


def debezium(values: Iterable[Any], columns: ColumnLookup) -> Iterator[RowChange]:
    for value in values:
        if not value or "op" not in value:
            continue
        table = value["source"]["table"]
        known = columns(table)
        before, after = (
            None if value[image] is None else _each(known, value[image], debezium_text) for image in ("before", "after")
        )
        yield RowChange(table, before, after)


def debezium_text(column: Column, value: Any) -> bytes:  # noqa: PLR0911, PLR0912 – one case per type
    """Decode each semantic type, in the default modes of the connectors except `bigint_unsigned: precise`."""
    if isinstance(value, Decimal):  # a logical type of Avro
        return f"{value:f}".encode()
    match column.type:
        case "decimal":
            return _scaled(_number(value), _digits(column)).encode()
        case "bigint" if column.unsigned:
            return b"%d" % _number(value)
        case "tinyint" if column.declared:
            return b"%d" % value
        case "bit":
            return b"%d" % (value if value in {True, False} else int.from_bytes(base64.b64decode(value), "little"))
        case "date":
            return str(date(1970, 1, 1) + timedelta(int(value))).encode()
        case "time":
            return _time(int(value), _fraction(column)).encode()
        case "datetime":
            digits = _fraction(column)
            return _moment(int(value) * (1 if digits > 3 else 1000), digits).encode()
        case "timestamp":
            return value.rstrip("Z").replace("T", " ").encode()
        case "enum" | "set":
            return _from_labels(column, value)
        case "uuid" | "inet4" | "inet6":
            return _packed(column, value)
        case "vector":
            return b"".join(struct.pack("<f", float(number)) for number in value)
        case kind if kind in SPATIAL:
            return int(value["srid"] or 0).to_bytes(4, "little") + base64.b64decode(value["wkb"])
        case kind if kind in BINARY:
            return base64.b64decode(value)
    return str(value).encode()


def _number(value: str) -> int:
    return int.from_bytes(base64.b64decode(value), "big", signed=True)


def _scaled(unscaled: int, scale: int) -> str:
    digits = f"{abs(unscaled):0{scale + 1}}"
    sign = "-" if unscaled < 0 else ""
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}" if scale else f"{sign}{digits}"


def _time(microseconds: int, digits: int) -> str:
    seconds, fraction = divmod(abs(microseconds), 10**6)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return ("-" if microseconds < 0 else "") + text + (f".{fraction:06}"[: digits + 1] if digits else "")


def _moment(microseconds: int, digits: int) -> str:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    return f"{moment.year:04}-{moment:%m-%d %H:%M:%S}" + (f".{moment.microsecond:06}"[: digits + 1] if digits else "")


# --- Maxwell ----------------------------------------------------------------------------------------------------------


def maxwell_json(lines: Iterable[Line], columns: ColumnLookup) -> Iterator[RowChange]:
    for value in (line["value"] for line in lines if line["value"]["type"] in {"insert", "update", "delete"}):
        known = columns(value["table"])
        data = _each(known, value["data"], maxwell_text)
        old = data | _each(known, value.get("old", {}), maxwell_text)
        images = {"insert": (None, data), "update": (old, data), "delete": (data, None)}
        yield RowChange(value["table"], *images[value["type"]])


def maxwell_text(column: Column, value: Any) -> bytes:
    match column.type:
        case "enum" | "set":
            return _from_labels(column, value)
        case "uuid" | "inet4" | "inet6":
            return _packed(column, value)
        case "json":
            return json.dumps(_json(value)).encode()
        case kind if kind in BINARY | {"vector"}:
            return base64.b64decode(value)
    return str(value).encode()


def _json(value: Any) -> Any:
    match value:
        case Number():
            return json.loads(value)
        case list():
            return [_json(part) for part in value]
        case dict():
            return {name: _json(part) for name, part in value.items()}
    return value


# --- shared -----------------------------------------------------------------------------------------------------------


def _each(columns: Columns, values: Mapping[str, Any], text: Callable[[Column, Any], bytes]) -> Texts:
    return {name: None if value is None else text(columns[name], value) for name, value in values.items()}


def _from_labels(column: Column, value: str | list[str]) -> bytes:
    """Return an ENUM's index or a SET's mask."""
    if column.type == "enum":
        return b"%d" % (column.values.index(str(value)) + 1 if value else 0)
    labels = value.split(",") if isinstance(value, str) and value else value
    return b"%d" % sum(1 << column.values.index(label) for label in labels)


def _packed(column: Column, value: str) -> bytes:
    return UUID(value).bytes if column.type == "uuid" else ip_address(value).packed


def _digits(column: Column) -> int:
    return int(column.raw_type.rstrip(")").rpartition(",")[2])


def _fraction(column: Column) -> int:
    return int(column.raw_type.rstrip(")").partition("(")[2] or 0)


READERS = {
    "databus": databus,
    "canal-json": canal_json,
    "canal-protobuf": canal_protobuf,
    "debezium-json": debezium_json,
    "debezium-avro": debezium_avro,
    "dip": dip,
    "maxwell-json": maxwell_json,
    "tdsql": tdsql,
}
