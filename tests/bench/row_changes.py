"""The row changes in a Kafka message of each format: how many there are, and the ids of the rows after them."""

from base64 import b64decode
from collections.abc import Callable
from typing import Any

import msgspec


class _Debezium(msgspec.Struct):
    """A message of `debezium-json`, without schemas; it has one change."""

    op: str
    after: dict[str, Any] | None


class _Maxwell(msgspec.Struct):
    """A message of `maxwell-json`; it has one change."""

    type: str
    data: dict[str, Any]


class _Canal(msgspec.Struct):
    """A message of `canal-json`; it has any number of changes, or a statement."""

    is_ddl: bool = msgspec.field(name="isDdl")
    data: list[dict[str, Any]] | None


class _Databus(msgspec.Struct):
    """A message of `databus`; each of an update's changes has two `rows`. Statements have none."""

    action: str | None = msgspec.field(name="Action", default=None)
    rows: list[list[str | None]] = msgspec.field(name="Rows", default_factory=list)


_debezium = msgspec.json.Decoder(_Debezium).decode
_maxwell = msgspec.json.Decoder(_Maxwell).decode
_canal = msgspec.json.Decoder(_Canal).decode
_databus = msgspec.json.Decoder(_Databus).decode


def _count_debezium(message: bytes | None) -> int:
    return int(message is not None and _debezium(message).op in "cud")  # a tombstone has no value


def _count_maxwell(message: bytes) -> int:
    return int(_maxwell(message).type in ("insert", "update", "delete"))


def _count_canal(message: bytes) -> int:
    flat = _canal(message)
    return 0 if flat.is_ddl else len(flat.data or ())


def _count_databus(message: bytes) -> int:
    change = _databus(message)
    return len(change.rows) // (2 if change.action == "update" else 1)


#: format → the number of row changes in a message
COUNT: dict[str, Callable[[bytes], int]] = {
    "debezium-json": _count_debezium,
    "maxwell-json": _count_maxwell,
    "canal-json": _count_canal,
    "databus": _count_databus,
}
#: format → column `id` of each row in a message about inserted rows
IDS: dict[str, Callable[[bytes], list[int]]] = {
    "debezium-json": lambda message: [int((_debezium(message).after or {})["id"])],
    "maxwell-json": lambda message: [int(_maxwell(message).data["id"])],
    "canal-json": lambda message: [int(row["id"]) for row in _canal(message).data or ()],
    "databus": lambda message: [int(b64decode(row[0] or "")) for row in _databus(message).rows],
}
