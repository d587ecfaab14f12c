"""Two ways to read a table's rows, which selects.py compares. As in readers.py, each run is a new process."""

import asyncio
import json
import os
import sys
from contextlib import aclosing
from dataclasses import asdict

import asyncmy
from asyncmy.cursors import SSCursor
from readers import Clock, Run, Task, peak

from databus_binlog import Login, float_text
from databus_binlog.row_batch import Conversion
from databus_binlog.session import connect
from databus_changes.catalog import read_table
from databus_changes.snapshot.select import Select, select

_BATCH = 1 << 16
_SESSION = "SET SESSION time_zone = '+00:00', sql_mode = ''"
_CONVERT = {
    Conversion.FLOAT: lambda text: float_text(float(text), single=True),
    Conversion.DOUBLE: lambda text: float_text(float(text)),
}


async def cells(task: Task, query: Select, clock: Clock) -> int:
    """Read with asyncmy's unbuffered cursor into batches of lists; floats are converted one by one."""
    login = {"host": task.host, "port": task.port, "user": task.user, "password": task.password}
    conversions = [(index, _CONVERT[kind]) for index, kind in enumerate(query.conversions) if kind]
    count, batch, size = 0, [], 0
    async with await asyncmy.connect(**login, use_unicode=False, conv={}) as connection:
        cursor = connection.cursor(SSCursor)
        await cursor.execute(_SESSION)
        with clock:
            await cursor.execute(query.sql)
            async for found in cursor:
                row = list(found)
                for index, convert in conversions:
                    if (cell := row[index]) is not None:
                        row[index] = convert(cell)
                batch.append(row)
                size += sum(len(cell) for cell in found if cell is not None)
                if size >= _BATCH:
                    count, batch, size = count + len(batch), [], 0
    return count + len(batch)


async def packed(task: Task, query: Select, clock: Clock) -> int:
    """Read with `Session.select` into batches of packed rows."""
    count = 0
    async with connect(_login(task)) as session:
        await session.query(_SESSION)
        with clock:
            async with aclosing(session.select(query.sql, query.conversions)) as batches:
                async for batch in batches:
                    count += batch.count
    return count


SELECTORS = {reader.__name__: reader for reader in (cells, packed)}


def _login(task: Task) -> Login:
    return Login(host=task.host, port=task.port, user=task.user, password=task.password)


async def run(task: Task, clock: Clock) -> int:
    async with connect(_login(task)) as session:
        table = await read_table(session, "bench", "t")
        assert table
    return await SELECTORS[task.reader](task, select(table), clock)


def main() -> None:
    task = Task(**json.load(sys.stdin))
    os.sched_setaffinity(0, {task.cpu})
    clock = Clock()
    count = asyncio.run(run(task, clock))
    json.dump(asdict(Run(count, clock.wall, clock.cpu, peak())), sys.stdout)


if __name__ == "__main__":
    main()
