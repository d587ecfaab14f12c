"""Columns of the lake's storm: their types, random values, defaults, and wider types."""

import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import NamedTuple

_WORDS = ("a", "A", "b", "ß", "Zoë", "李", "🦊", "it's", "\\", "", " x", "ab", "AB", "null", "0")
_LIMITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
#: keys are from a small range, so that statements meet rows
_KEYS = 40
_JSON = ('{"a": 1}', "[1, null]", '"text"', "{}")

#: types of columns that are added → literals of their defaults, if there may be one
ADDED: dict[str, Sequence[str]] = {
    "tinyint": ("7", "-3", "'5'"),
    "smallint unsigned": ("65535",),
    "int": ("0", "7", "-2147483648"),
    "bigint": ("9223372036854775807",),
    "bigint unsigned": ("18446744073709551615",),
    "decimal(8,2)": ("1.5", "'-2.25'"),
    "double": ("0.25", "-8"),
    "float": ("0.5",),
    "varchar(10)": ("'d'", "'it''s'", "''"),  # one with a backslash depends on the sql_mode: it parks the table
    "char(5)": ("'x'",),
    "date": ("'2020-02-29'",),
    "datetime": ("'2020-01-02 03:04:05'",),
    "datetime(3)": ("'2020-01-02 03:04:05.678'",),
    "text": (),
    "tinytext": (),
    "enum('a','b','it''s')": (),
    "set('a','b')": (),
    "time": (),
    "year": (),
    "bit(8)": (),
    "blob": (),
    "varbinary(10)": ("'ab'",),
}
#: types that a column may have that is NOT NULL and has no default
IMPLICIT = ("int", "decimal(8,2)", "double", "varchar(10)", "text", "enum('a','b','it''s')", "blob", "year")
#: keys of new tables: columns, key
KEYS = (
    ("id int not null", "id"),
    ("id bigint unsigned not null auto_increment", "id"),
    ("a int not null, k varchar(10) not null", "a, k"),
    ("k varchar(20) not null", "k"),
    ("d decimal(10,2) not null", "d"),
    ("at datetime not null, id int not null", "id, at"),
    ("u varbinary(8) not null", "u"),
)


class Column(NamedTuple):
    """A column as information_schema has it."""

    name: str
    #: with its size, in lower case
    type: str
    kind: str
    nullable: bool
    key: str
    length: int
    precision: int

    @property
    def in_key(self) -> bool:
        """Whether it is one of the primary key's."""
        return self.key == "PRI"

    @property
    def numbers(self) -> list[int]:
        """Its size, and what else is between the parentheses."""
        return [int(text) for text in re.findall(r"\d+", self.type)]

    @property
    def labels(self) -> int:
        """Number of its labels."""
        return self.type.count("','") + 1


def quoted(text: str) -> str:
    """Quote a string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def draw(random: Random, column: Column) -> str:
    """Draw the literal of a value."""
    if column.nullable and random.random() < 0.15:
        return "NULL"
    kind = column.kind
    if kind in _LIMITS:
        return str(_integer(random, column))
    if kind in _DRAWN:
        return _DRAWN[kind](random, column)
    if kind.endswith(("blob", "binary")):
        data = random.randbytes(1) if column.in_key else random.randbytes(random.randrange(9))
        return f"X'{data[: column.length or 8].hex()}'"
    words = random.choice(_WORDS) if column.in_key else "".join(random.choices(_WORDS, k=random.randrange(4)))
    return quoted(words[: column.length or 10])


def _integer(random: Random, column: Column) -> int:
    if column.in_key:
        return random.randrange(1, _KEYS)
    bits, unsigned = _LIMITS[column.kind], "unsigned" in column.type
    low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    values: list[int] = [low, high, random.randint(0, 99), random.randint(low, high)]
    return random.choice(values)


def _decimal(random: Random, column: Column) -> str:
    digits, scale = column.numbers[:2]
    if column.in_key:
        return f"{random.randrange(1, _KEYS)}.50"
    whole = random.randrange(10 ** random.randint(1, digits - scale))
    return f"{random.choice(['', '-'])}{whole}.{random.randrange(10**scale):0{scale}}"


def _moment(random: Random, column: Column) -> str:
    seconds = random.randrange(_KEYS) if column.in_key else random.randrange(10**9)
    moment = datetime(2001, 1, 1) + timedelta(seconds=seconds)
    if column.kind == "date":
        return quoted(f"{moment:%Y-%m-%d}")
    fraction = f".{random.randrange(10**column.precision):0{column.precision}}" if column.precision else ""
    return quoted(f"{moment:%Y-%m-%d %H:%M:%S}{fraction}")


_DRAWN: dict[str, Callable[[Random, Column], str]] = {
    "decimal": _decimal,
    "double": lambda random, _: str(random.randrange(-(10**6), 10**6) / 4),
    "float": lambda random, _: str(random.randrange(-(10**4), 10**4) / 4),
    "enum": lambda random, column: str(random.randint(1, column.labels)),
    "set": lambda random, column: str(random.randrange(2**column.labels)),
    "date": _moment,
    "datetime": _moment,
    "timestamp": _moment,
    "time": lambda random, _: quoted(f"{random.randrange(-838, 839)}:{random.randrange(60):02}:00"),
    "year": lambda random, _: str(random.choice([0, 1901, 2155, 2024])),
    "bit": lambda random, column: str(random.randrange(2 ** column.numbers[0])),
    "json": lambda random, _: quoted(random.choice(_JSON)),
}


def wider(random: Random, column: Column) -> str | None:
    """Draw a type that has all values of a column's type; None if there is none."""
    kind, numbers = column.kind, column.numbers
    unsigned = " unsigned" if "unsigned" in column.type else ""
    found: list[str] = []
    if kind in _LIMITS:
        found = [f"{each}{unsigned}" for each, bits in _LIMITS.items() if bits > _LIMITS[kind]]
    elif kind == "decimal":
        digits, scale = numbers[:2]
        found = [f"decimal({digits + more + 2},{scale + more})" for more in (0, 1) if digits + more < 30]
    elif kind in ("varchar", "varbinary", "char", "bit"):
        found = [f"{kind}({min(numbers[0] * 2, 60)})"]
        if kind == "varchar" and not column.key:
            found += ["text", "mediumtext"]
        if kind == "char" and not column.key:
            found += [f"varchar({numbers[0] + 3})"]
    elif kind in ("tinytext", "text", "tinyblob", "blob"):
        found = [f"{size}{kind[-4:]}" for size in ("medium", "long")]
    elif kind in ("enum", "set"):
        labels = column.type.partition("(")[2].removesuffix(")")
        new = f"'l{column.labels}'"
        found = [f"{kind}({labels},{new})"] + [f"{kind}({new},{labels})"] * (kind == "enum")
    elif kind in ("datetime", "timestamp") and not column.precision:
        found = [f"{kind}(3)", f"{kind}(6)"]
    return random.choice(found) if found else None
