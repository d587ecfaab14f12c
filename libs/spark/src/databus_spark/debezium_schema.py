"""The definition of a table in the newest record of a Debezium topic: the columns and the primary key."""

from dataclasses import dataclass
from typing import TypeVar

import msgspec
from aiokafka import ConsumerRecord

from databus_core.definitions import encode_definition
from databus_core.errors import InvalidSettings
from databus_core.events import Column, Table
from databus_spark.debezium_types import Field, connect_type
from databus_spark.types import TypeOptions

_T = TypeVar("_T")

#: what to do about records without schemas
ENABLE_SCHEMAS = (
    "set key.converter.schemas.enable and value.converter.schemas.enable to true in the connector "
    "(schemas_enable: true in a route)"
)


@dataclass(frozen=True)
class Newest:
    """A table as its newest row describes it."""

    schema: str
    name: str
    columns: tuple[Field, ...]
    #: names of the columns of the primary key; empty if there is none
    key: tuple[str, ...]
    #: what precedes the payload in values, and in keys, of the same schema
    value_head: str
    key_head: str

    def definition(self, types: TypeOptions) -> str:
        """Return the definition of the table as messages in the `databus` format have it, with types that are alike."""
        names = [column.field for column in self.columns]
        if unknown := [name for name in self.key if name not in names]:
            raise InvalidSettings(
                f"the record key of {self.schema}.{self.name} has the field {unknown[0]}, which its rows do not have: "
                "set message.key.columns to columns of the table that identify a row"
            )
        columns = tuple(
            Column(name=each.field, type="", raw_type=connect_type(each, types).raw) for each in self.columns
        )
        key = tuple(map(names.index, self.key))
        return encode_definition(Table(schema=self.schema, name=self.name, columns=columns, primary_key=key))


class _Source(msgspec.Struct):
    db: str
    table: str | None = None


class _Change(msgspec.Struct):
    op: str
    source: _Source


class _Value(msgspec.Struct):
    payload: _Change | None
    schema: msgspec.Raw = msgspec.Raw(b"null")


class _Key(msgspec.Struct):
    schema: msgspec.Raw = msgspec.Raw(b"null")


def find_newest(record: "ConsumerRecord[bytes, bytes]") -> tuple[str, Newest] | None:
    """Return the time of a record, and what it says of its table; None unless it is a change of a row.

    Raises InvalidSettings if it has no schema.
    """
    value = _decoded(record.value, _Value) or _Value(_decoded(record.value, _Change))
    change, key = value.payload, _decoded(record.key, _Key) or _Key()
    if change is None or change.op not in ("c", "r", "u", "d") or not change.source.table:
        return None
    rows = {field.field: field for field in _fields(value.schema)}.get("after")
    if rows is None or (record.key is not None and not _fields(key.schema)):
        raise InvalidSettings(f"topic {record.topic} has records without schemas: {ENABLE_SCHEMAS}")
    return f"{record.timestamp:016d}", Newest(
        schema=change.source.db,
        name=change.source.table,
        columns=rows.fields,
        key=tuple(field.field for field in _fields(key.schema)),
        value_head=_head(value.schema),
        key_head=_head(key.schema),
    )


def _decoded(data: bytes | msgspec.Raw | None, kind: type[_T]) -> _T | None:
    try:
        return msgspec.json.decode(data or b"", type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _fields(schema: msgspec.Raw) -> tuple[Field, ...]:
    found = _decoded(schema, Field)
    return found.fields if found else ()


def _head(schema: msgspec.Raw) -> str:
    return f'{{"schema":{bytes(schema).decode()},"payload":'
