"""Random changes, with a seed, of tables with columns of every type, with and without keys."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from random import Random

from common import column_types
from common.column_types import Column
from devstack import Kind

#: the server sets this column in an UPDATE that does not
_STAMP = "stamp TIMESTAMP NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP"


@dataclass
class Target:
    """A table, and how to change it."""

    name: str
    #: SQL of the columns and keys before c0, c1, …
    head: Sequence[str]
    columns: Sequence[Column]
    #: SQL of a new key for the column that the head begins with; "": the server sets it, or there is none
    new_key: str = ""

    @property
    def creation(self) -> str:
        """The statement that creates the table."""
        columns = [f"c{number} {column.type}" for number, column in enumerate(self.columns)]
        return f"CREATE TABLE {self.name} ({', '.join([*self.head, *columns])})"

    @property
    def select(self) -> str:
        """The query of all values, as text."""
        names = [part.split()[0] for part in self.head]
        texts = [column.text(f"c{number}") for number, column in enumerate(self.columns)]
        return f"SELECT {', '.join([*names, *texts])} FROM {self.name}"

    def change(self, random: Random) -> str:
        """Return a statement that replaces or deletes a row, or updates one to three; more are added than deleted."""
        some = f"ORDER BY RAND({random.randrange(10**6)}) LIMIT"
        match random.choices(["replace", "update", "delete"], [5, 4, 2])[0]:
            case "replace":
                names, values = zip(*self._new_row(random), strict=True)
                return f"REPLACE INTO {self.name} ({', '.join(names)}) VALUES ({', '.join(values)})"
            case "update":
                new = random.sample(self._new_row(random), k=min(3, len(self.columns)))
                return f"UPDATE IGNORE {self.name} SET {', '.join(map(' = '.join, new))} {some} {random.randint(1, 3)}"
        return f"DELETE FROM {self.name} {some} 1"

    def _new_row(self, random: Random) -> list[tuple[str, str]]:
        """Return name and new value of each column that statements can set."""
        key = [(self.head[0].split()[0], self.new_key.format(random.randrange(200)))] if self.new_key else []
        columns = ((n, column) for n, column in enumerate(self.columns) if not column.generated)
        return key + [(f"c{n}", column.value(random.randrange(100))) for n, column in columns]


def targets(kind: Kind) -> list[Target]:
    """Return the tables."""
    columns = _columns(kind)
    return [
        Target("keyed", ["id INT AUTO_INCREMENT PRIMARY KEY", _STAMP], columns),
        Target("named", ["name VARCHAR(9) CHARACTER SET latin1 PRIMARY KEY"], columns[::7], "'ñ{}'"),
        Target("ratios", ["ratio FLOAT PRIMARY KEY"], columns[3::7], "{} / 7"),
        Target("keyless", [_STAMP], columns),
        Target("derived", ["id INT PRIMARY KEY"], column_types.DERIVED, "{}"),
    ]


def transactions(tables: Sequence[Target], random: Random, changes: int) -> Iterator[list[str]]:
    """Yield transactions that together have this number of statements; some end in ROLLBACK."""
    while changes > 0:
        size = min(changes, random.randint(1, 6))
        changes -= size
        statements = [random.choice(tables).change(random) for _ in range(size)]
        yield ["BEGIN", *statements, random.choices(["COMMIT", "ROLLBACK"], [9, 1])[0]]


def _columns(kind: Kind) -> list[Column]:
    """Return columns of every type, without long values."""
    own = column_types.MARIADB if kind == "mariadb" else column_types.MYSQL
    groups = (
        column_types.NUMBERS, column_types.TIMES, column_types.LABELS, column_types.TEXTS, column_types.BYTES,
        column_types.GEOMETRIES, own,
    )  # fmt: skip
    short = (
        Column(column.type, [value for value in column.values if "REPEAT" not in value])
        for column in chain.from_iterable(groups)
    )
    return [column for column in short if column.values]
