"""Stop a Kafka producer in any state, and leave none of its tasks and futures behind.

`AIOKafkaProducer.stop` waits until everything is delivered, for ever while Kafka is unavailable. If it is interrupted,
the producer's tasks keep running and hold their batches. A fenced producer keeps errors in futures that nobody awaits.
asyncio reports such tasks and futures when they are garbage-collected: "Task was destroyed but it is pending", "Future
exception was never retrieved".
"""

import asyncio
from contextlib import suppress
from types import CoroutineType
from typing import Any, cast

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError


async def stop_producer(kafka: AIOKafkaProducer, seconds: float) -> None:
    """Deliver what was sent, for at most `seconds`, and disconnect."""
    try:
        with suppress(KafkaError, TimeoutError):
            async with asyncio.timeout(seconds):
                await kafka.stop()
    finally:
        await _end_tasks(kafka)
        await kafka.client.close()
        _retrieve_errors(kafka)


async def _end_tasks(kafka: AIOKafkaProducer) -> None:
    """Cancel the tasks of a producer. It has no list of them; they run methods of its sender and its accumulator."""
    parts = (kafka._sender, kafka._message_accumulator)
    tasks = [task for task in asyncio.all_tasks() if any(_runs_for(task) is part for part in parts)]
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)


def _runs_for(task: "asyncio.Task[object]") -> object:
    """Return the sender or accumulator whose method a task runs; None for any other task."""
    coroutine = cast("CoroutineType[Any, Any, Any]", task.get_coro())
    # Inspect only aiokafka's frames: reading `f_locals` keeps a frame's local objects alive as long as the frame.
    if coroutine.__qualname__.startswith(("Sender.", "MessageAccumulator.")) and coroutine.cr_frame:
        return coroutine.cr_frame.f_locals.get("self")
    return None


def _retrieve_errors(kafka: AIOKafkaProducer) -> None:
    """Retrieve the errors of futures that only aiokafka can await: of the transaction and of queued batches."""
    futures = [batch._drain_waiter for batches in kafka._message_accumulator._batches.values() for batch in batches]
    if kafka._txn_manager:
        futures.append(kafka._txn_manager._transaction_waiter)
    for future in futures:
        if future and future.done() and not future.cancelled():
            future.exception()
