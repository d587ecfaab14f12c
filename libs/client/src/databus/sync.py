"""The client for programs without asyncio.

    from databus.sync import Databus

    with Databus("http://dump-api:8080") as databus:
        for change in databus.changes("shop.*", store="place.json"):
            print(change.action, change.table, change.after)
            databus.ack(change)

Arguments and results are those of the asynchronous client, which runs in a thread of its own.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from databus.change import Change, Transaction
from databus.client import Databus as AsyncDatabus
from databus_core.settings import Settings

if TYPE_CHECKING:
    from databus.arrow import ChangeBatch

_T = TypeVar("_T")


class Databus:
    """See `databus.Databus`. Use it in `with`."""

    def __init__(
        self, source: str | Path | Settings, *, kafka: str | Mapping[str, Any] | None = None, api_key: str = ""
    ) -> None:
        self._client = AsyncDatabus(source, kafka=kafka, api_key=api_key)
        self._loop = asyncio.new_event_loop()
        #: what the loop does for this program
        self._task: asyncio.Task[Any] | None = None
        self._thread = Thread(target=self._loop.run_forever, name="databus", daemon=True)
        self._thread.start()

    def changes(self, tables: str | list[str] = "*.*", **options: Any) -> Iterator[Change]:
        """See `databus.Databus.changes`, which names the options."""
        for block, trail in self._iterated(self._client.changes(tables, **options).blocks()):
            if block:
                yield from block.changes(trail)

    def transactions(self, tables: str | list[str] = "*.*", **options: Any) -> Iterator[Transaction]:
        """See `databus.Changes.transactions`; the options are those of `changes`."""
        return self._iterated(self._client.changes(tables, **options).transactions())

    def batches(
        self, tables: str | list[str] = "*.*", *, rows: int = 10_000, **options: Any
    ) -> "Iterator[ChangeBatch]":
        """See `databus.Changes.batches`; the other options are those of `changes`."""
        return self._iterated(self._client.changes(tables, **options).batches(rows))

    def ack(self, done: "Change | Transaction | ChangeBatch") -> None:
        """Save in the store that this and all before it is done."""
        self._run(done.ack())

    def _iterated(self, found: AsyncIterator[_T]) -> Iterator[_T]:
        async def step() -> tuple[_T] | None:
            try:
                return (await anext(found),)
            except StopAsyncIteration:
                return None

        while item := self._run(step()):
            yield item[0]

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Do work in the loop. An interruption of the program ends the work, too, before it goes on."""
        done = asyncio.run_coroutine_threadsafe(self._as_task(work), self._loop)
        try:
            return done.result()
        except BaseException:
            done.cancel()
            asyncio.run_coroutine_threadsafe(self._ended(), self._loop).result()
            raise

    async def _as_task(self, work: Coroutine[Any, Any, _T]) -> _T:
        self._task = asyncio.current_task()
        return await work

    async def _ended(self) -> None:
        if self._task:
            await asyncio.wait({self._task})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._run(self._client.close())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
