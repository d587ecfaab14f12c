"""Executes a case on a server, and translates the binlog with the classes that reader and publisher use."""

import asyncio
import re
import secrets
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cases.case import Case, Step
from cases.lines import lines_of
from common.connections import Print, printing, session_on
from databus_binlog import Position
from databus_binlog.session import Session, Stream
from databus_changes.catalog import read_table
from databus_changes.ddl.dialect import dialect_of
from databus_changes.tracker import TableTracker
from databus_changes.translate import Translator
from databus_core.errors import START_OVER, DatabusError
from databus_core.kafka_history import SchemaHistory
from databus_core.progress import Progress
from databus_core.settings import Publisher, Source
from databus_messages.encoder import EventEncoder
from databus_messages.formats.base import MessageSource
from databus_messages.outputs import plan_outputs
from devstack import Server

SCHEMA = "shop"
SALT = "00" * 32
_CAPTURED = Source(include=[f"{SCHEMA}.*"])
_SECONDS = 20
_POSITION = re.compile(r"\S+\.\d{6,}:\d+")


async def replay(case: Case, server: Server) -> list[Step]:
    """Execute the statements in order; return each with the messages that it caused."""
    async with (
        printing(server) as run,
        _variables(run, case.variables),
        _schema(run),
        session_on(server) as queries,
        session_on(server) as log,
    ):
        start = await queries.current_position()
        translation = _Translation(case, queries, await _tracker(queries))
        stream = await log.dump(
            start,
            server_id=secrets.randbelow(2**31) + 1000,
            wanted=_CAPTURED.captures,
            describe=translation.tracker.describe,
        )
        steps = []
        for step in case.steps:
            await run(step.statement)
            end = await queries.current_position()
            steps.append(Step(step.statement, await translation.until(end, stream) if end != start else []))
            start = end
    return steps


@asynccontextmanager
async def _variables(run: Print, assignments: list[str]) -> AsyncIterator[None]:
    """Set global variables, and restore them."""
    names = [assignment.partition("=")[0].strip() for assignment in assignments]
    before = {name: (await run(f"SELECT @@GLOBAL.{name}"))[0][0] for name in names}
    for assignment in assignments:
        await run(f"SET GLOBAL {assignment}")
    try:
        yield
    finally:
        for name, value in before.items():
            await run(f"SET GLOBAL {name} = {(value or b'').decode()}")


@asynccontextmanager
async def _schema(run: Print) -> AsyncIterator[None]:
    await run(f"DROP DATABASE IF EXISTS {SCHEMA}")
    await run(f"CREATE DATABASE {SCHEMA} CHARACTER SET utf8mb4")
    await run(f"USE {SCHEMA}")
    yield
    await run(f"DROP DATABASE {SCHEMA}")


async def _tracker(session: Session) -> TableTracker:
    return TableTracker(
        SchemaHistory(charsets={SCHEMA: "utf8mb4"}),
        await dialect_of(session),
        lookup=lambda schema, name: read_table(session, schema, name),
        tracks=_CAPTURED.captures_some,
    )


class _Translation:
    """Translates events to lines. After an error it skips the statement's other events, then starts afresh."""

    def __init__(self, case: Case, session: Session, tracker: TableTracker) -> None:
        self.tracker = tracker
        self._case = case
        self._flavor = session.server.flavor
        self._publisher = Publisher.model_validate({"routes": case.routes, "salt": SALT, **case.publisher})
        self._restart()

    def _restart(self) -> None:
        rules = self._publisher.rules
        source = MessageSource("cases", self._flavor, "", 0)
        partition_counts = defaultdict[str, int](lambda: self._case.partitions)
        self._translator = Translator(
            _CAPTURED, self._flavor, self.tracker, Progress(), partial=self._publisher.publish_partial
        )
        self._encoder = EventEncoder(rules, plan_outputs(rules), source, partition_counts, SALT.encode())

    async def until(self, end: Position, stream: Stream) -> list[str]:
        """Return the lines up to a position or an error.

        An error replaces the lines of the open transaction, which Kafka would not commit.
        """
        lines: list[str] = []
        committed = 0
        stopped = False
        async with asyncio.timeout(_SECONDS):
            async for decoded in stream:
                events = list(decoded)
                if not stopped:
                    try:
                        for change in await self._translator.translate(events, decoded.tables):
                            for message in self._encoder.messages(change):
                                lines += lines_of(message, self._case)
                            if not self._encoder.in_transaction:
                                committed = len(lines)
                    except DatabusError as error:
                        stopped = True
                        del lines[committed:]
                        text = str(error).replace(START_OVER, "START OVER")
                        lines.append(f"!! {_POSITION.sub('FILE:OFFSET', text)}")
                        self._restart()
                if stream.drained and events[-1].file == end.file and events[-1].end >= end.offset:
                    break
        return lines
