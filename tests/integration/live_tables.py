"""A running pipeline over small tables, and a consumer that must always end with the rows of the database."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from common.connections import printing
from common.pipelines import Changes
from common.waiting import eventually
from databus_cli.__main__ import main
from databus_core.kafka_table_states import read_states
from databus_core.settings import load
from databus_core.table_states import TableStates
from devstack.pipeline import Pipeline


class Live:
    """A running pipeline, and a consumer that keeps the rows of its tables by their first column."""

    def __init__(self, pipeline: Pipeline, schema: str) -> None:
        self.pipeline = pipeline
        self.schema = schema
        #: table → key → row
        self.rows: dict[str, dict[bytes, list[bytes | None]]] = {}
        #: tables in the order of their TRUNCATE messages
        self.truncated: list[str] = []

    async def follow(self, consumer: Changes) -> None:
        """Apply messages, for ever."""
        while True:
            for message in await consumer.until(1):
                self._apply(message["Table"]["Name"], message)

    def _apply(self, table: str, message: dict[str, Any]) -> None:
        kept = self.rows.setdefault(table, {})
        match message["Action"]:
            case "truncate":
                kept.clear()
                self.truncated.append(table)
            case "delete":
                for row in message["Rows"]:
                    del kept[row[0]]
            case "insert":
                kept |= {row[0]: row for row in message["Rows"]}
            case "update":
                kept |= {row[0]: row for row in message["Rows"][1::2]}

    async def states(self) -> TableStates:
        return (await read_states(load(self.pipeline.config)))[0]

    async def parked(self, *tables: str) -> dict[str, str]:
        """Wait until exactly these tables are parked. Return their reasons."""
        found: dict[str, str] = {}

        async def are_parked() -> bool:
            found.clear()
            for (_, table), doubt in (await self.states()).doubts.items():
                found[table] = doubt.reason if doubt.state == "parked" else doubt.state
            return set(found) == set(tables) and "filling" not in found.values()

        try:
            await eventually(are_parked, seconds=30)
        except TimeoutError:
            pytest.fail(f"{tables} are not parked: {found}")
        return found

    async def equals(self, *tables: str) -> None:
        """Wait until the consumer has the rows that the database has."""
        async with printing(self.pipeline.source) as query:
            expected = {each: sorted(await query(f"SELECT * FROM {self.schema}.{each}")) for each in tables}

        async def is_equal() -> bool:
            return {each: sorted(self.rows.get(each, {}).values()) for each in tables} == expected

        try:
            await eventually(is_equal)
        except TimeoutError:
            pytest.fail(f"{expected} in the database, {self.rows}")

    async def has_loaded(self) -> bool:
        return not (await self.states()).unfinished()

    async def is_degraded(self) -> bool:
        return "degraded" in self.pipeline.get("reader", "/readyz").text

    async def was_truncated(self) -> bool:
        return bool(self.truncated)

    async def command(self, *arguments: str) -> int:
        """Run a command of `databus`. Return its exit code."""
        return await asyncio.to_thread(main, [*arguments, "--config", str(self.pipeline.config)])


Begin = Callable[..., Awaitable[Live]]
