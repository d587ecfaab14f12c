"""What the bench reads: seeded statements on one table, in batches that all have the same mix of changes."""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial


@dataclass(frozen=True)
class Workload:
    """Statements, each a transaction of its own unless `session` says otherwise."""

    table: str
    batches: int
    statements: Callable[[random.Random, int], Iterator[str]]
    #: row changes in a batch, and row images: an update has two
    rows: int
    images: int
    session: str = "SET autocommit = 1"


def _digits(draw: random.Random, groups: int) -> str:
    return "-".join(f"{draw.randrange(10**11):011}" for _ in range(groups))


_POOL = random.Random(1)
_C = [_digits(_POOL, 10) for _ in range(5000)]
_PAD = [_digits(_POOL, 5) for _ in range(5000)]
_SYSBENCH = """CREATE TABLE bench.t (
  id INT NOT NULL PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, KEY (k))"""


def _sysbench(draw: random.Random, batch: int, *, size: int) -> Iterator[str]:
    """100 inserts like sysbench's, `size` in a transaction."""
    for start in range(batch * 100 + 1, batch * 100 + 101, size):
        numbers = range(start, start + size)
        yield f"INSERT INTO bench.t VALUES {','.join(_tuple(sysbench_row(draw, n)) for n in numbers)}"


def sysbench_row(draw: random.Random, number: int) -> Sequence[object]:
    """Draw a row of W1m and W1s, as SQL literals."""
    return number, draw.randrange(10**6), f"'{draw.choice(_C)}'", f"'{draw.choice(_PAD)}'"


def _tuple(literals: Sequence[object]) -> str:
    return f"({','.join(map(str, literals))})"


_WORDS = ["lorem", "ipsum", "dolor", "sit", "amet", "café", "naïve", "東京", "данные", "data", "stream", "Ωmega", "😀"]
_TYPED = """CREATE TABLE bench.t (
  id BIGINT UNSIGNED NOT NULL PRIMARY KEY, i8 TINYINT NOT NULL, u16 SMALLINT UNSIGNED NOT NULL, i24 MEDIUMINT NULL,
  i32 INT NULL, u64 BIGINT UNSIGNED NOT NULL, amount DECIMAL(18,4) NOT NULL, dt6 DATETIME(6) NOT NULL,
  ts TIMESTAMP NULL, d DATE NOT NULL, name VARCHAR(200) NOT NULL, nick VARCHAR(60) NULL, txt TEXT NULL,
  js JSON NOT NULL, en ENUM('alpha','beta','gamma','delta') NOT NULL, st SET('a','b','c','d','e') NOT NULL,
  b8 BIT(8) NOT NULL, f FLOAT NOT NULL, dbl DOUBLE NULL, bl BLOB NULL)"""


def _typed(draw: random.Random, batch: int) -> Iterator[str]:
    """600 inserts, 200 updates and 100 deletes, 100 in a transaction."""
    first = batch * 600 + 1
    for start in range(first, first + 600, 100):
        yield f"INSERT INTO bench.t VALUES {','.join(_tuple(typed_row(draw, n)) for n in range(start, start + 100))}"
    for start in (first, first + 300):
        yield (
            "UPDATE bench.t SET i8 = -i8 - 1, u64 = u64 DIV 2, amount = amount + 1.5, dt6 = dt6 + INTERVAL 1 SECOND,"
            f" name = CONCAT(LEFT(name, 180), '!') WHERE id BETWEEN {start} AND {start + 99}"
        )
    yield f"DELETE FROM bench.t WHERE id BETWEEN {first + 100} AND {first + 199}"


def typed_row(draw: random.Random, number: int) -> Sequence[object]:
    """Draw a row of W2, as SQL literals."""
    below = draw.randrange

    def words(low: int, high: int) -> str:
        return f"'{' '.join(draw.choices(_WORDS, k=below(low, high)))}'"

    def date(first_year: int, years: int) -> str:
        return f"{below(first_year, first_year + years)}-{below(1, 13):02}-{below(1, 29):02}"

    def time() -> str:
        return f"{below(24):02}:{below(60):02}:{below(60):02}"

    def maybe(nulls: float, value: object) -> object:
        return "NULL" if draw.random() < nulls else value

    tags = draw.choices(_WORDS, k=3)
    return (
        number,
        below(-128, 128),
        below(2**16),
        maybe(0.3, below(-(2**23), 2**23)),
        maybe(0.2, below(-(2**31), 2**31)),
        below(2**64),
        f"{below(-(10**13), 10**13)}.{below(10**4):04}",
        f"'{date(2024, 1)} {time()}.{below(10**6):06}'",
        maybe(0.3, f"'{date(2023, 1)} {time()}'"),
        f"'{date(2010, 20)}'",
        words(3, 9),
        maybe(0.5, words(3, 4)),
        maybe(0.3, words(10, 40)),
        f"'{json.dumps({'id': number, 'tags': tags, 'n': below(1000) / 8}, ensure_ascii=False)}'",
        below(1, 5),
        below(1, 32),
        below(256),
        below(10**6) / 64,
        maybe(0.2, draw.random() * 1e6),
        maybe(0.4, f"x'{draw.randbytes(below(1, 81)).hex()}'"),
    )


def _large(draw: random.Random, batch: int) -> Iterator[str]:
    """100 inserts of 1 KB that can be compressed to a half."""
    rows = (f"({n},'{draw.randbytes(512).hex()}')" for n in range(batch * 100, batch * 100 + 100))
    yield f"INSERT INTO bench.t VALUES {','.join(rows)}"


LARGE = Workload(
    "CREATE TABLE bench.t (id INT NOT NULL PRIMARY KEY, body VARCHAR(1024) CHARACTER SET ascii NOT NULL)",
    *(10_000, _large, 100, 100),
    session="SET autocommit = 0",
)
LARGE_COMPRESSED = replace(LARGE, session="SET autocommit = 0, binlog_transaction_compression = ON")
WORKLOADS = {
    "W1m": Workload(_SYSBENCH, 10_000, partial(_sysbench, size=100), 100, 100),
    "W1s": Workload(_SYSBENCH, 1_000, partial(_sysbench, size=1), 100, 100),
    "W2": Workload(_TYPED, 500, _typed, 900, 1100),
}
