"""What an operator sees while a fault lasts: readiness, metrics, alerts and log lines, every 15 seconds."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from common.waiting import cancelled, eventually
from faults.drill.logs import Line, Logs
from faults.drill.rig import Rig
from reference.metrics import alerts as rules

_EVERY_SECONDS = 15
_PATIENCE_SECONDS = 600
#: an expression that goes on to be true for a while after its cause has ended
_LOOKS_BACK = re.compile(r"\b(?:increase|changes)\(\S+\[(\d+[mh])\]\)")
#: name → query
QUERIES = {
    "reader": 'min(databus_freshness_seconds{stage="reader"})',
    "publisher": 'min(databus_freshness_seconds{stage="publisher"})',
    "active readers": 'sum(databus_leader{role="reader"})',
    "active publishers": 'sum(databus_leader{role="publisher"})',
    "backlog": "max(databus_reader_backlog_bytes)",
    "generations": "sum(databus_publisher_generations_total)",
    "dead letters": "sum(databus_publisher_dead_letters_total)",
    "in doubt": "sum(databus_reader_table_in_doubt)",
    "refusals": "sum(databus_reader_source_refusals_total)",
    "failed dumps": 'sum(databus_dump_total{state="failed"})',
    "storage free": "databus_dump_storage_free_bytes",
}


@dataclass
class Moment:
    """What is seen, `at` so many seconds after the fault."""

    at: float
    #: what was done now
    note: str = ""
    #: `503 reason` of each replica that is not ready, and the text of one that is degraded
    readiness: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, list[float]] = field(default_factory=dict)
    #: name of an alert, with its distinguishing labels → `pending` or `firing`
    alerts: dict[str, str] = field(default_factory=dict)
    #: lines since the last moment
    lines: list[Line] = field(default_factory=list)


@dataclass
class Record:
    """The story of one fault."""

    name: str
    moments: list[Moment] = field(default_factory=list)
    #: alerts that a former fault had left
    left: list[str] = field(default_factory=list)
    #: when each alert fired first, in seconds
    fired: dict[str, float] = field(default_factory=dict)
    #: measured durations
    measured: dict[str, float] = field(default_factory=dict)
    quiet: float = 0.0


class Recorder:
    """Records one fault; `say` gets each moment as it is recorded."""

    def __init__(self, rig: Rig, name: str, say: Callable[[Moment], None]) -> None:
        self._rig = rig
        self._say = say
        self.record = Record(name)
        self._begin = time.monotonic()
        self.logs = Logs(rig)

    @property
    def now(self) -> float:
        """Seconds since the fault."""
        return time.monotonic() - self._begin

    @asynccontextmanager
    async def recording(self) -> AsyncIterator[None]:
        """Look every 15 s."""
        self.record.left = sorted(await self._alerts())
        self._begin = time.monotonic()
        self.logs.begin()
        looking = asyncio.create_task(self._look_regularly())
        try:
            yield
        finally:
            await cancelled(looking)
        with suppress(asyncio.CancelledError):
            looking.result()
        await self._look()
        self.record.quiet = self.now

    def note(self, text: str, lines: Sequence[Line] = ()) -> None:
        """Record what was done, and what it printed."""
        moment = Moment(self.now, note=text, lines=[*lines])
        self.record.moments.append(moment)
        self._say(moment)

    async def do(self, text: str, action: Awaitable[object]) -> None:
        """Record an action, and do it."""
        self.note(text)
        await action

    async def type(self, command: str) -> None:
        """Type a `databus` command, and record it and what it printed."""
        code, output = await self._rig.type(command)
        shown = command.removesuffix(" --yes")
        printed = [Line("", "", self.logs.plain(text.rstrip())) for text in output.splitlines() if text]
        self.note(f"typed `{shown}`" + (f": exit code {code}" if code else ""), printed)

    async def hold(self, seconds: float, *, until: Sequence[str] = ()) -> None:
        """Let the fault last: at most so long, and with `until` only until these alerts have fired, if they do."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if until and set(until) <= {_rule(name) for name in (*self.record.fired, *self.record.left)}:
                await self._look()
                return
            await asyncio.sleep(1)
            await self._note_fired()

    async def until_quiet(self) -> None:
        """Wait until the pipeline works, and no alert is left but those that look back."""
        await self._rig.until_works()
        left = {*looking_back(), *map(_rule, self.record.left)}

        async def is_quiet() -> bool:
            return {*map(_rule, await self._alerts())} <= left

        await eventually(is_quiet, seconds=_PATIENCE_SECONDS, pause=1)

    async def _look_regularly(self) -> None:
        while True:
            await self._look()
            await asyncio.sleep(_EVERY_SECONDS - self.now % _EVERY_SECONDS)

    async def _look(self) -> None:
        readiness = {}
        for replica, (status, text) in (await self._rig.replicas.readiness()).items():
            if status != 200 or "degraded" in text:
                readiness[str(replica)] = f"{status or ''} {self.logs.plain(text)}".strip()
        values = {name: await self._rig.alerts.values(query) for name, query in QUERIES.items()}
        await self._note_fired()
        moment = Moment(self.now, "", readiness, values, await self._alerts(), self.logs.new_lines())
        self.record.moments.append(moment)
        self._say(moment)

    async def _note_fired(self) -> None:
        for name, state in (await self._alerts()).items():
            if state == "firing" and name not in self.record.left:
                self.record.fired.setdefault(name, self.now)

    async def _alerts(self) -> dict[str, str]:
        found = {}
        for alert in await self._rig.alerts.active():
            labels = alert["labels"]
            chosen = [labels[name] for name in ("role", "stage", "reason", "table") if name in labels]
            if "instance" in labels and alert["labels"]["alertname"] != "DatabusHostRefused":
                chosen.append(self._of_instance(labels["instance"]))
            name = labels["alertname"].removeprefix("Databus")
            found[f"{name} ({', '.join(chosen)})" if chosen else name] = alert["state"]
        return found

    def _of_instance(self, instance: str) -> str:
        [replica] = [r for r in self._rig.replicas.all if self._rig.pipeline.url(*r).endswith(instance)]
        return str(replica)


def looking_back() -> dict[str, str]:
    """Return the alerts that go on for a while after their cause has ended, and for how long."""
    found = {}
    for rule in rules():
        if ages := _LOOKS_BACK.findall(rule["expr"].partition("unless")[0]):
            found[rule["alert"].removeprefix("Databus")] = ages[0]
    return found


def _rule(alert: str) -> str:
    """Return the name of an alert's rule, without its labels."""
    return alert.partition(" ")[0]
