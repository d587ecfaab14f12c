"""Write single-row transactions at a steady rate, and record the time at which the server confirmed each commit.

The script reads a `Pace` from standard input, and writes the times (`time.monotonic`), in the order of row ids, to
standard output. Both are JSON.
"""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pymysql


@dataclass(frozen=True)
class Pace:
    """What to insert where, and how fast; the rows are distributed evenly over the connections."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    #: id of the first row
    first: int
    #: rows per second, of all connections together
    rate: int
    seconds: float
    connections: int


def main() -> None:
    pace = Pace(**json.load(sys.stdin))
    begin = time.monotonic() + 0.5
    with ThreadPoolExecutor(pace.connections) as pool:
        times = pool.map(lambda connection: _write(pace, connection, begin), range(pace.connections))
        json.dump([moment for one_of_each in zip(*times, strict=True) for moment in one_of_each], sys.stdout)


def _write(pace: Pace, ordinal: int, begin: float) -> list[float]:
    """Insert the rows of one connection, each at its scheduled time or, if that has passed, at once."""
    login = {"host": pace.host, "port": pace.port, "user": pace.user, "password": pace.password}
    with pymysql.connect(**login, autocommit=True) as connection:
        committed = []
        for number in range(ordinal, int(pace.rate * pace.seconds), pace.connections):
            time.sleep(max(0.0, begin + number / pace.rate - time.monotonic()))
            connection.query(f"INSERT INTO bench.t VALUES ({pace.first + number}, {number})")
            committed.append(time.monotonic())
        return committed


if __name__ == "__main__":
    main()
