"""The workloads that the benches write to a server and read from its binlog.

Each consists of batches of statements on one table. All batches have the same mix of changes, and every run writes the
same values, because the caller seeds the random generator.
"""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial


@dataclass(frozen=True)
class Workload:
    """A number of batches of SQL statements on one table."""

    #: the CREATE TABLE statement
    table: str
    #: number of batches at scale 1
    batches: int
    #: returns the statements of a batch, given the random generator and the batch's number
    statements: Callable[[random.Random, int], Iterator[str]]
    #: row changes in a batch
    rows: int
    #: row images in a batch; an update has two
    images: int
    #: executed before the first batch; with autocommit, each statement is a transaction, without it the whole workload
    session: str = "SET autocommit = 1"


def _digits(draw: random.Random, groups: int) -> str:
    return "-".join(f"{draw.randrange(10**11):011}" for _ in range(groups))


_POOL = random.Random(1)
_C = [_digits(_POOL, 10) for _ in range(5000)]
_PAD = [_digits(_POOL, 5) for _ in range(5000)]
_SYSBENCH = """CREATE TABLE bench.t (
  id INT NOT NULL PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, KEY (k))"""


def _sysbench(draw: random.Random, batch: int, *, size: int) -> Iterator[str]:
    """Insert 100 rows like sysbench's, `size` rows in a transaction."""
    for start in range(batch * 100 + 1, batch * 100 + 101, size):
        yield _insert(draw, "bench.t", range(start, start + size))


def _insert(draw: random.Random, table: str, numbers: range) -> str:
    return f"INSERT INTO {table} VALUES {','.join(_tuple(sysbench_row(draw, number)) for number in numbers)}"


def _four_tables(draw: random.Random, batch: int, *, size: int) -> Iterator[str]:
    """Insert `5 * size` rows into each of FOUR_TABLES, `size` rows of one table in a transaction.

    The last transaction of a batch has `size` rows of each table. So the log ends with rows of every table.
    """
    if batch == 0:
        yield from (_SYSBENCH.replace("bench.t ", f"{table} ") for table in FOUR_TABLES)
    first = batch * 5 * size + 1
    *alone, together = (range(start, start + size) for start in range(first, first + 5 * size, size))
    yield from (_insert(draw, table, numbers) for numbers in alone for table in FOUR_TABLES)
    yield "BEGIN"
    yield from (_insert(draw, table, together) for table in FOUR_TABLES)
    yield "COMMIT"


def sysbench_row(draw: random.Random, number: int) -> Sequence[object]:
    """Return a random row of W1m and W1s, as SQL literals."""
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
    """Insert 600 rows, update 200 of them and delete 100 others, 100 rows in a transaction."""
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
    """Return a random row of W2, as SQL literals."""
    randrange = draw.randrange

    def words(least: int, most: int) -> str:
        return f"'{' '.join(draw.choices(_WORDS, k=draw.randint(least, most)))}'"

    def date(first_year: int, years: int) -> str:
        return f"{randrange(first_year, first_year + years)}-{randrange(1, 13):02}-{randrange(1, 29):02}"

    def time() -> str:
        return f"{randrange(24):02}:{randrange(60):02}:{randrange(60):02}"

    def nullable(null_share: float, value: object) -> object:
        return "NULL" if draw.random() < null_share else value

    tags = draw.choices(_WORDS, k=3)
    return (
        number,
        randrange(-128, 128),
        randrange(2**16),
        nullable(0.3, randrange(-(2**23), 2**23)),
        nullable(0.2, randrange(-(2**31), 2**31)),
        randrange(2**64),
        f"{randrange(-(10**13), 10**13)}.{randrange(10**4):04}",
        f"'{date(2024, 1)} {time()}.{randrange(10**6):06}'",
        nullable(0.3, f"'{date(2023, 1)} {time()}'"),
        f"'{date(2010, 20)}'",
        words(3, 8),
        nullable(0.5, words(3, 3)),
        nullable(0.3, words(10, 39)),
        f"'{json.dumps({'id': number, 'tags': tags, 'n': randrange(1000) / 8}, ensure_ascii=False)}'",
        randrange(1, 5),
        randrange(1, 32),
        randrange(256),
        randrange(10**6) / 64,
        nullable(0.2, draw.random() * 1e6),
        nullable(0.4, f"x'{draw.randbytes(randrange(1, 81)).hex()}'"),
    )


def _large(draw: random.Random, batch: int) -> Iterator[str]:
    """Insert 100 rows of 1 KB; random hexadecimal digits can be compressed to half their size."""
    rows = (f"({n},'{draw.randbytes(512).hex()}')" for n in range(batch * 100, batch * 100 + 100))
    yield f"INSERT INTO bench.t VALUES {','.join(rows)}"


#: One transaction of 1,000,000 rows and 1 GB: served.py commits it after the last batch.
LARGE = Workload(
    table="CREATE TABLE bench.t (id INT NOT NULL PRIMARY KEY, body VARCHAR(1024) CHARACTER SET ascii NOT NULL)",
    batches=10_000,
    statements=_large,
    rows=100,
    images=100,
    session="SET autocommit = 0",
)
LARGE_COMPRESSED = replace(LARGE, session="SET autocommit = 0, binlog_transaction_compression = ON")
_W1M = Workload(_SYSBENCH, batches=10_000, statements=partial(_sysbench, size=100), rows=100, images=100)
WORKLOADS = {
    # sysbench's table, many rows in a transaction
    "W1m": _W1M,
    # sysbench's table, a single row in a transaction
    "W1s": replace(_W1M, batches=1_000, statements=partial(_sysbench, size=1)),
    # 20 columns of many types, with updates and deletes, many rows in a transaction
    "W2": Workload(_TYPED, batches=500, statements=_typed, rows=900, images=1100),
}
#: the tables of FOUR_TABLE_WORKLOADS; all have the same number of rows
FOUR_TABLES = ("bench.t1", "bench.t2", "bench.t3", "bench.t4")
_W4M = Workload(_SYSBENCH, batches=500, statements=partial(_four_tables, size=100), rows=2000, images=2000)
#: W1m and W1s, spread over four tables; every 17th transaction has rows of all of them
FOUR_TABLE_WORKLOADS = {
    "W1m": _W4M,
    "W1s": replace(_W4M, batches=10_000, statements=partial(_four_tables, size=1), rows=20, images=20),
}
