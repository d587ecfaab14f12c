"""The client reads the same changes in every format: all values of the matrix, as far as the format has them."""

import json
import re
import struct
from base64 import b64decode
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from ipaddress import ip_address
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from common.column_types import MARIADB, tables
from contract.published import Published, publish
from databus_core.events import Action
from devstack import Server


class Reading(NamedTuple):
    """A format with options, and all differences of its values from those of format `databus`."""

    format: str
    options: dict[str, Any]
    #: type → what to do with a value to get that of format `databus`
    exact: Mapping[str, Callable[[Any], Any]] = {}
    #: types of which only NULL is compared
    lost: Collection[str] = ()
    #: what the format has instead of a value of format `databus`
    instead: Callable[[str, Any], Any] = lambda _, value: value


def word(kind: str) -> str:
    """Return the first word of a column's definition."""
    return re.split(r"\W", kind, maxsplit=1)[0]


def _or_text(read: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda text: text if "-00" in text else read(text)


def _duration(text: str) -> timedelta:
    hours, minutes, seconds = text.lstrip("-").split(":")
    microseconds = int(Decimal(seconds) * 1_000_000)
    length = timedelta(hours=int(hours), minutes=int(minutes), microseconds=microseconds)
    return -length if text.startswith("-") else length


def _declared(kind: str, value: Any) -> Any:
    """An impossible date is NULL; MariaDB's JSON is no text, if it has no number of 70,000 digits."""
    if isinstance(value, str) and kind.startswith(("DATE", "TIMESTAMP")) and "-00" in value:
        return None
    return _document(value) if kind == MARIADB[0].type and value is not None else value


def _document(text: str) -> Any:
    return text if len(text) == 70_000 else json.loads(text)


def _floats(text: str) -> list[float]:
    return [value for (value,) in struct.iter_unpack("<f", b64decode(text))]


BYTES = ("BINARY", "VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB")
GEOMETRIES = ("GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON",
              "GEOMETRYCOLLECTION")  # fmt: skip
ADDRESSES = {"INET4": ip_address, "INET6": ip_address}
TEXTS = ADDRESSES | {"JSON": _document}
NUMBERS_OR_BASE64 = ("DECIMAL", "BIT", "DATE", "TIME", "DATETIME", "TIMESTAMP", "SET", "UUID", "VECTOR", *BYTES,
                     *GEOMETRIES)  # fmt: skip
MAXWELL = {
    "FLOAT": float,
    "DOUBLE": float,
    "DATE": _or_text(date.fromisoformat),
    "DATETIME": _or_text(datetime.fromisoformat),
    "TIMESTAMP": _or_text(lambda text: datetime.fromisoformat(f"{text}+00:00")),
    "TIME": _duration,
    "SET": set,
    "UUID": UUID,
    "VECTOR": _floats,
    "JSON": lambda value: float(value) if isinstance(value, Decimal) else value,
    **ADDRESSES,
    **dict.fromkeys(BYTES, b64decode),
}
#: with records of transactions, of heartbeats and of schema changes
ISO = {"time": "isostring", "boolean": "number", "bigint_unsigned": "precise", "provide_transaction_metadata": True,
       "heartbeat_interval_ms": 1}  # fmt: skip
WITHOUT_SCHEMAS = {"schemas_enable": False}
POSITIONS = {"output_binlog_position": True, "kafka_key_format": "array"}
READINGS = {
    "debezium": Reading("debezium-json", {}, ADDRESSES, instead=_declared),
    "debezium, as text": Reading("debezium-json", ISO, ADDRESSES, instead=_declared),
    "debezium without schemas": Reading(
        "debezium-json", WITHOUT_SCHEMAS, ADDRESSES | {"JSON": _document}, NUMBERS_OR_BASE64, _declared
    ),
    "maxwell": Reading("maxwell-json", POSITIONS, MAXWELL, GEOMETRIES),
    "canal": Reading("canal-json", {}),
    "canal, in a time zone": Reading("canal-json", {"time_zone": "America/New_York"}),
}


@pytest.fixture
async def published(source: Server, schema: str) -> Published:
    return await publish(source, schema)


async def test_every_format_gives_the_values_of_format_databus(published: Published) -> None:
    exact = [change for change in await published.read("databus") if change.query is None]
    columns = {
        table.name: {f"c{number}": column.type for number, column in enumerate(table.columns)}
        for table in tables(published.kind)
    }
    assert len(exact) > 100
    for name, reading in READINGS.items():
        found = [each for each in await published.read(reading.format, **reading.options) if each.query is None]
        assert [(each.action, each.table) for each in found] == [(each.action, each.table) for each in exact], name
        for change, expected in zip(found, exact, strict=True):
            assert change.transaction == expected.transaction
            assert change.key == expected.key, name
            kinds = columns[change.table.partition(".")[2]]
            for image, original in ((change.before, expected.before), (change.after, expected.after)):
                assert list(differences(reading, kinds, image, original)) == [], (name, change.table)


def differences(
    reading: Reading, kinds: dict[str, str], found: dict[str, Any] | None, exact: dict[str, Any] | None
) -> Iterator[tuple[str, Any, Any]]:
    """Yield the type, the value and what it should be, of each value that is not explained by the reading."""
    assert (found is None) == (exact is None)
    if found is None or exact is None:
        return
    assert list(found) == list(exact)
    for name, original in exact.items():
        kind = kinds.get(name, "INT")
        value, wanted = found[name], reading.instead(kind, original)
        if word(kind) in reading.lost and None not in (value, wanted):
            continue
        if value is not None and (convert := reading.exact.get(word(kind))):
            value = convert(value)
        if value != wanted:
            yield kind, value, wanted


async def test_canal_has_exact_texts(published: Published) -> None:
    exact = [change for change in await published.read("databus") if change.query is None]
    found = [change for change in await published.read("canal-json") if change.query is None]
    assert [(each.before_text, each.after_text) for each in found] == [
        (each.before_text, each.after_text) for each in exact
    ]
    for name in ("debezium-json", "maxwell-json"):
        *_, last = await published.read(name)
        with pytest.raises(LookupError, match=f"is published in format {name}, which does not have exact texts"):
            _ = last.before_text


@pytest.mark.parametrize("format_name", ["canal-json", "maxwell-json"])
async def test_statements(published: Published, format_name: str) -> None:
    options = {"output_ddl": True} if format_name == "maxwell-json" else {}
    exact = [change for change in await published.read("databus") if change.query is not None]
    found = [change for change in await published.read(format_name, **options) if change.query is not None]
    assert {each.action for each in exact} == {Action.CREATE}
    assert [(each.action, each.table, each.query) for each in found] == [
        (each.action, each.table, each.query) for each in exact
    ]
