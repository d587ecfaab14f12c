"""Clients that request backfills at random, and pause, resume and cancel them."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from random import Random

from databus_changes.backfill_requests import change, request
from databus_changes.backfill_tables import BackfillRequest
from databus_core.errors import BackfillConflict, RetryableError
from databus_core.kafka_table_states import read_states
from databus_core.settings import Settings
from databus_core.table_states import TableStates, Wanted
from faults.checker import Stuck
from faults.copies import Violation
from faults.ledger import Book

#: the longest time between two requests, in seconds
_PAUSE = 2.0
#: after this time without more requests, all backfills have ended
_FINISH_SECONDS = 240


class Clients:
    """Requests for the tables of a ledger."""

    def __init__(self, settings: Settings, schema: str, books: Sequence[Book], random: Random) -> None:
        self._settings = settings
        self._schema = schema
        self._books = {(schema, book.name): book for book in books}
        self._random = random
        #: what was requested, and how backfills have ended → how often
        self.done: Counter[str] = Counter()
        self._ended: set[str] = set()
        self._finishing = False

    async def run(self) -> None:
        """Request something now and then, until `finish`. Then let all backfills end, and load all parked tables.

        Raises Violation or Stuck.
        """
        while not self._finishing:
            with suppress(RetryableError, BackfillConflict):
                await self._request(await self._look())
            await asyncio.sleep(self._random.uniform(0, _PAUSE))
        await self._end_backfills()

    def finish(self) -> None:
        """Let `run` request nothing more, and end once all backfills have ended."""
        self._finishing = True

    async def _end_backfills(self) -> None:
        try:
            async with asyncio.timeout(_FINISH_SECONDS):
                while not await self._has_finished():  # noqa: ASYNC110 - an event cannot come out of Kafka
                    await asyncio.sleep(0.5)
        except TimeoutError as error:
            states, _ = await read_states(self._settings)
            left = [(each.full_name, states.progress.get(each.id)) for each in states.unfinished()]
            text = f"backfills did not end within {_FINISH_SECONDS} s: {left}; in doubt: {states.doubts}"
            raise Stuck(text) from error

    async def _has_finished(self) -> bool:
        with suppress(RetryableError, BackfillConflict):
            states = await self._look()
            paused = [each.id for each in states.unfinished() if each.wanted == "pause"]
            await self._change("run", paused)
            await self._start(book for name, book in self._books.items() if self._is_parked(states, name))
            return not states.unfinished() and not states.doubts
        return False

    def _is_parked(self, states: TableStates, name: tuple[str, str]) -> bool:
        return name in states.doubts and name not in {each.name for each in states.unfinished()}

    async def _look(self) -> TableStates:
        """Read the states of all tables, and verify that only what was requested has happened to them."""
        states, _ = await read_states(self._settings)
        for key, progress in states.progress.items():
            if progress.is_final and key not in self._ended:
                self._ended.add(key)
                self.done[progress.state] += 1
                if progress.state == "failed":
                    raise Violation(f"backfill {key} has failed: {progress.error}")
        for doubt in states.doubts.values():
            if doubt.reason != "incomplete_backfill":
                raise Violation(f"a table is in doubt: {doubt.text}")
        cancelling = {each.name for each in states.unfinished() if each.wanted == "cancel"}
        for name, book in self._books.items():
            if book.left_out == float("inf") and name not in states.doubts and name not in cancelling:
                book.ends_leaving_out()  # it was not parked, or is loaded again
        return states

    async def _request(self, states: TableStates) -> None:
        """Request something that the states allow."""
        unfinished = {each.name: each for each in states.unfinished()}
        [wanted] = self._random.choices(("start", "pause", "run", "cancel"), (5, 2, 3, 2))
        if wanted == "start":
            free = [book for name, book in self._books.items() if name not in unfinished]
            await self._start(self._random.sample(free, min(len(free), self._random.randint(1, 3))))
        elif unfinished:
            backfill = self._random.choice(list(unfinished.values()))
            if wanted == "cancel" and backfill.clean:
                self._books[backfill.name].left_out = float("inf")
            await self._change(wanted, [backfill.id])

    async def _start(self, books: Iterable[Book]) -> None:
        """Request backfills; of several tables in one request, if they are to be loaded in the same way."""
        wanted: dict[bool, list[str]] = {}
        for book in books:
            # Rows of a table without a key cannot be told from those that consumers have. A table of transactions is
            # never emptied: it would be parked if that backfill is cancelled, and its rows show the storm's progress.
            clean = not book.key or book.left_out is not None or self._random.random() < 0.5
            wanted.setdefault(clean and book.kind != "transactions", []).append(f"{self._schema}.{book.name}")
        for clean, tables in wanted.items():
            started = await request(self._settings, BackfillRequest(tables=tables, clean=clean))
            self.done["requested"] += len(started)
            self.done["with --clean"] += clean * len(started)

    async def _change(self, wanted: Wanted, backfills: list[str]) -> None:
        """Write a request until it is durable, so that none arrives later."""
        while backfills:
            try:
                changed = await change(self._settings, wanted, ids=backfills)
                self.done[f"to {wanted}"] += len(changed)
                return
            except RetryableError:
                await asyncio.sleep(_PAUSE)
