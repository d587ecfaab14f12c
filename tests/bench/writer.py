"""Writes single-row transactions at a steady pace, and notes when each commit was answered.

Its pace comes on standard input, the times (time.monotonic) by row id go to standard output.
"""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pymysql


@dataclass(frozen=True)
class Pace:
    """Row ids from `first` on, so many a second for so many seconds, by several connections in turns."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    first: int
    rate: int
    seconds: float
    connections: int


def main() -> None:
    pace = Pace(**json.load(sys.stdin))
    begin = time.monotonic() + 0.5
    with ThreadPoolExecutor(pace.connections) as pool:
        times = pool.map(lambda share: _write(pace, share, begin), range(pace.connections))
        json.dump([moment for share in zip(*times, strict=True) for moment in share], sys.stdout)


def _write(pace: Pace, share: int, begin: float) -> list[float]:
    """Insert every so manyth row when its time has come; whoever is late does not wait."""
    login = {"host": pace.host, "port": pace.port, "user": pace.user, "password": pace.password}
    with pymysql.connect(**login, autocommit=True) as connection:
        committed = []
        for number in range(share, int(pace.rate * pace.seconds), pace.connections):
            time.sleep(max(0.0, begin + number / pace.rate - time.monotonic()))
            connection.query(f"INSERT INTO bench.t VALUES ({pace.first + number}, {number})")
            committed.append(time.monotonic())
        return committed


if __name__ == "__main__":
    main()
