"""The compiled writer's fast paths for decimals, dates, times and JSON agree with the conversions in Python."""

import random
from collections.abc import Callable

import msgspec
import pytest

from databus_core.events import Column
from databus_messages.formats.debezium.json import JsonCodec
from databus_messages.formats.debezium.options import DebeziumOptions
from databus_messages.formats.debezium.schemas import struct
from databus_messages.formats.debezium.types import column_type

ALPHABET = b'0123456789.:- "\\{}[],eEtrunl\t\x00\xc3\xa9'
Draw = Callable[[random.Random], str]


def decimal(draw: random.Random) -> str:
    digits = "".join(draw.choices("0123456789", k=draw.randrange(1, 25)))
    point = draw.randrange(1, len(digits) + 1)
    return f"{draw.choice(['', '-'])}{digits[:point]}.{digits[point:]}"


def near_power_of_two(draw: random.Random) -> str:
    return str(draw.choice([-1, 1]) * 2 ** draw.randrange(66) + draw.randrange(-1, 2))


def day(draw: random.Random) -> str:
    year = draw.choice([0, 1, 4, 1582, 1900, 1970, 2000, 2024, 9999])
    return f"{year:04}-{draw.randrange(14):02}-{draw.randrange(33):02}"


def time(draw: random.Random) -> str:
    fraction = draw.choice(["", f".{draw.randrange(1000):03}", f".{draw.randrange(10**6):06}"])
    return f"{draw.randrange(25):02}:{draw.randrange(61):02}:{draw.randrange(61):02}{fraction}"


def duration(draw: random.Random) -> str:
    return f"{draw.choice(['', '-'])}{draw.choice(['', '1', '8'])}{time(draw)}"


def moment(draw: random.Random) -> str:
    return f"{day(draw)} {time(draw)}"


def document(draw: random.Random, depth: int = 0) -> str:
    space = draw.choice(["", " ", "\n\t"])
    scalars = ["true", "false", "null", "0", "-1.5e+3", '""', '"a \\" b\\\\"', '"é😀"', '"\\u00e9"', "[]", "{ }"]
    if depth == 3 or draw.random() < 0.3:
        return space + draw.choice(scalars) + space
    items = [document(draw, depth + 1) for _ in range(draw.randrange(1, 4))]
    if draw.random() < 0.5:
        return f"[{','.join(items)}]{space}"
    members = [f'{space}"{name}"{space}:{item}' for name, item in enumerate(items)]
    return f"{space}{{{','.join(members)}}}"


@pytest.mark.parametrize(
    ("kind", "raw_type", "draw"),
    [
        ("decimal", "decimal(24,2)", decimal),
        ("decimal", "decimal(20,0)", near_power_of_two),
        ("date", "date", day),
        ("time", "time(6)", duration),
        ("datetime", "datetime(3)", moment),
        ("datetime", "datetime(6)", moment),
        ("timestamp", "timestamp(6)", moment),
        ("json", "json", document),
    ],
)
@pytest.mark.parametrize("nullable", [False, True])
def test_the_compiled_writer_agrees_with_the_conversions_in_python(
    kind: str, raw_type: str, draw: Draw, nullable: bool
) -> None:
    column = column_type(Column(name="v", type=kind, raw_type=raw_type, nullable=nullable), DebeziumOptions())
    encoder = JsonCodec(schemas_enable=False).row_encoder(struct("s", {"v": column.schema}), [column])
    seeded = random.Random(8)
    for _ in range(5000):
        text = bytearray(draw(seeded).encode())
        for _ in range(seeded.choice([0, 0, 1, 2])):  # edit about half of the texts; an edit may change nothing
            start = seeded.randrange(len(text) + 1)
            text[start : start + seeded.randrange(2)] = seeded.choice([b"", bytes([seeded.choice(ALPHABET)])])
        expected = outcome(lambda text: msgspec.json.encode({"v": column.convert(text)}), bytes(text))
        assert outcome(lambda text: encoder.columns([[text]], (0,), b"", b"")[0], bytes(text)) == expected


def outcome(encode: Callable[[bytes], bytes], text: bytes) -> bytes | type[Exception]:
    """Return the encoded text, or the type of the error that `encode` raises."""
    try:
        return encode(text)
    except (TypeError, ValueError) as error:
        return type(error)
