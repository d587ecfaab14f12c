"""The baseline for the path from a binlog to Kafka: python-mysql-replication, `json.dumps` and aiokafka's `send`.

As with readers.py, the task, a `Sending`, is read from standard input, and the result, a `Run`, is written to standard
output.
"""

import asyncio
import json
import sys
from dataclasses import asdict, dataclass

from aiokafka import AIOKafkaProducer
from pymysqlreplication.row_event import RowsEvent, UpdateRowsEvent
from readers import Clock, Run, Task, library_events, peak


@dataclass(frozen=True)
class Sending(Task):
    """What to read and where to send it: one message per event (reader `baseline`) or per row (`baseline, by row`)."""

    kafka: str
    topic: str


# Of all settings that we tried, these made the baseline fastest.
#: aiokafka's default, 16 KiB, has room for about one message of a full rows event
BATCH_BYTES = 2**20
LINGER_MS = 50


async def send(task: Sending, clock: Clock) -> int:
    """Send all changes with an idempotent producer, wait until all replicas have them, and count the row images."""
    count, by_row = 0, task.reader == "baseline, by row"
    options = {"max_batch_size": BATCH_BYTES, "max_request_size": 2 * BATCH_BYTES, "linger_ms": LINGER_MS}
    async with AIOKafkaProducer(
        bootstrap_servers=task.kafka, acks="all", enable_idempotence=True, **options
    ) as producer:
        with library_events(task) as events, clock:
            for event in events:
                if not isinstance(event, RowsEvent):
                    continue
                change = {"schema": event.schema, "table": event.table, "event": type(event).__name__}
                for rows in [[row] for row in event.rows] if by_row else [event.rows]:
                    message = json.dumps(change | {"rows": rows}, default=str)
                    await producer.send(task.topic, message.encode())
                count += len(event.rows) * (2 if isinstance(event, UpdateRowsEvent) else 1)
            await producer.flush()
    return count


def main() -> None:
    clock = Clock()
    count = asyncio.run(send(Sending(**json.load(sys.stdin)), clock))
    json.dump(asdict(Run(count, clock.wall, clock.cpu, peak())), sys.stdout)


if __name__ == "__main__":
    main()
