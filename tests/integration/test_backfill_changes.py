"""`databus backfill pause|resume|cancel|list`, and how the progress of backfills is shown until they have ended."""

import asyncio
import json
import os
import pty
import re
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from common.connections import Execute
from databus_cli.__main__ import main
from databus_core.table_states import Backfill, backfill_key, decode_states
from devstack import Server
from integration.backfills import Requests, make_requests

Command = Callable[..., Awaitable[tuple[int, list[str], list[str]]]]


@pytest.fixture
def source(mariadb: Server) -> Server:
    """Only `start` uses the database."""
    return mariadb


@pytest.fixture
async def requests(source: Server, kafka: Server, schema: str, tmp_path: Path) -> Requests:
    requests = make_requests(source, kafka, schema, tmp_path)
    await requests.begin()
    return requests


@pytest.fixture
def command(requests: Requests, capfd: pytest.CaptureFixture[str]) -> Command:
    """Run `databus backfill`. Return exit code, output and errors."""

    async def command(*arguments: str) -> tuple[int, list[str], list[str]]:
        capfd.readouterr()
        code = await asyncio.to_thread(main, ["backfill", *arguments, "--config", str(requests.config)])
        out, err = capfd.readouterr()
        return code, out.splitlines(), err.splitlines()

    return command


async def wanted(requests: Requests) -> dict[str, str]:
    found = decode_states((await requests.records()).items()).backfills
    return {key: each.wanted for key, each in sorted(found.items())}


# --- pause, resume, cancel --------------------------------------------------------------------------------------------


async def test_a_backfill_is_paused_resumed_and_cancelled_and_keeps_its_other_fields(
    requests: Requests, command: Command
) -> None:
    asked = await requests.request("a1", "orders", where="id > 1", output="default", any_size=True, requested_us=7)
    await requests.reach("a1", state="running", rows=5)
    for action, value in (("pause", "pause"), ("pause", "pause"), ("resume", "run"), ("cancel", "cancel")):
        assert await command(action, "a1") == (0, [f"a1 {asked.full_name}"], [])
        [found] = decode_states((await requests.records()).items()).backfills.values()
        assert (found.wanted, found.where, found.output, found.any_size, found.requested_us) == (
            value, "id > 1", "default", True, 7,
        )  # fmt: skip


async def test_tables_and_all_stand_for_their_backfills_that_have_not_ended(
    requests: Requests, command: Command, schema: str
) -> None:
    for number, table in enumerate(("orders", "items", "log", "orders")):
        await requests.request(f"a{number}", table)
    await requests.reach("a0", state="done")
    assert (await command("pause", f"{schema}.orders", "a2"))[0] == 0
    assert await wanted(requests) == {"a0": "run", "a1": "run", "a2": "pause", "a3": "pause"}
    code, lines, _ = await command("cancel", "--all")
    assert (code, [line.split()[0] for line in lines]) == (0, ["a1", "a2", "a3"])
    assert await wanted(requests) == {"a0": "run", "a1": "cancel", "a2": "cancel", "a3": "cancel"}


async def test_what_cannot_be_changed_is_named_and_nothing_is_changed(
    requests: Requests, command: Command, schema: str
) -> None:
    for number, state in enumerate(("running", "done", "running")):
        await requests.request(f"a{number}", f"t{number}", wanted="run" if number < 2 else "cancel")
        await requests.reach(f"a{number}", state=state)
    before = await requests.records()
    assert await command("resume", "a0", "a1", "a2", "a9", f"{schema}.t1") == (
        1,
        [],
        [
            "databus: there is no backfill a9",
            f"databus: backfill a1 of {schema}.t1 has ended: done",
            f"databus: no backfill of {schema}.t1 is waiting, running or paused",
            f"databus: backfill a2 of {schema}.t2 is being cancelled",
        ],
    )
    assert await requests.records() == before


# --- list -------------------------------------------------------------------------------------------------------------


async def test_the_list_shows_what_was_reached_and_what_a_client_wants(
    requests: Requests, command: Command, schema: str
) -> None:
    assert await command("list") == (0, [], ["databus: no backfills"])
    await requests.request("a0", "orders", requested_us=1_795_217_165_000_000)
    await requests.reach("a0", state="running", rows=5_000, estimate=20_000, started_us=1_000_000, updated_us=3_000_000)
    await requests.request("a1", "items", wanted="pause")
    await requests.reach("a1", state="running", rows=3)
    await requests.request("a2", "log")
    await requests.reach("a2", state="failed", error="table log was dropped")
    code, (_, *lines), errors = await command("list")
    assert (code, errors) == (0, [])
    assert [re.split(r"\s{2,}", line.strip()) for line in lines] == [
        ["a2", f"{schema}.log", "failed", "0", "0", "table log was dropped"],
        ["a1", f"{schema}.items", "running (pausing)", "3", "0"],
        ["a0", f"{schema}.orders", "running", "5,000", "20,000", "2,500", "0:00:06", "2026-11-20 23:26:05"],
    ]
    code, lines, _ = await command("list", "--json")
    *_, first = (json.loads(line) for line in lines)
    shown = {name: first[name] for name in ("id", "state", "rows", "rows_per_second", "seconds_left", "requested")}
    assert (code, shown) == (
        0,
        {
            "id": "a0", "state": "running", "rows": 5000, "rows_per_second": 2500.0, "seconds_left": 6.0,
            "requested": "2026-11-20T23:26:05Z",
        },
    )  # fmt: skip


# --- watching ---------------------------------------------------------------------------------------------------------


class Terminal:
    """Runs `databus backfill` with a terminal as its standard error, by default."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self._ours, self._theirs = pty.openpty()
        self.text = ""

    async def run(self, *arguments: str, stderr: int | None = None) -> asyncio.subprocess.Process:
        program = Path(sys.executable).parent / "databus"
        environment = os.environ | {"TERM": "xterm", "COLUMNS": "150"}
        return await asyncio.create_subprocess_exec(
            program, "backfill", *arguments, "--config", self._requests.config,
            stdout=asyncio.subprocess.PIPE, stderr=stderr or self._theirs, env=environment,
        )  # fmt: skip

    async def shows(self, text: str) -> None:
        """Wait until the terminal has shown a text."""
        loop, readable = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._ours, readable.set)
        try:
            async with asyncio.timeout(30):
                while text not in self.text:
                    await readable.wait()
                    readable.clear()
                    self.text += os.read(self._ours, 4096).decode(errors="replace")
        finally:
            loop.remove_reader(self._ours)

    def close(self) -> None:
        os.close(self._ours)
        os.close(self._theirs)


@pytest.fixture
def terminal(requests: Requests) -> Iterator[Terminal]:
    # A shell starts jobs in the background with interrupts ignored, and all their children inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    terminal = Terminal(requests)
    yield terminal
    terminal.close()
    signal.signal(signal.SIGINT, before)


async def requested(process: asyncio.subprocess.Process) -> str:
    assert process.stdout
    return (await process.stdout.readline()).decode().split()[0]


async def started(terminal: Terminal, schema: str, execute: Execute) -> tuple[asyncio.subprocess.Process, str]:
    """Start the backfill of a table; return the process, which shows that it is waiting, and the backfill's id."""
    await execute("CREATE TABLE orders (id INT PRIMARY KEY)")
    process = await terminal.run("start", f"{schema}.orders")
    backfill = await requested(process)
    await terminal.shows("waiting")
    return process, backfill


async def test_on_a_terminal_start_shows_the_progress_until_it_is_done(
    requests: Requests, terminal: Terminal, schema: str, execute: Execute
) -> None:
    process, backfill = await started(terminal, schema, execute)
    progress = {"estimate": 2_000, "started_us": 1_000_000, "updated_us": 2_000_000}
    await requests.reach(backfill, state="running", rows=500, **progress)
    await terminal.shows("500 of about 2,000 rows, 500 rows/s")
    assert "25%" in terminal.text
    await requests.reach(backfill, state="done", rows=1_900, **progress)
    await terminal.shows("done")
    assert await process.wait() == 0


async def test_watching_ends_when_all_have_ended_and_fails_if_one_is_not_done(
    requests: Requests, terminal: Terminal, schema: str
) -> None:
    for number in range(3):
        await requests.request(f"a{number}", f"t{number}")
    process = await terminal.run("list", "--watch")
    await terminal.shows("waiting")
    await requests.reach("a0", state="done")
    await requests.reach("a1", state="failed", error="no grant")
    await terminal.shows("failed")
    assert process.returncode is None
    await requests.reach("a2", state="cancelled")
    await terminal.shows(f"databus: backfill a1 of {schema}.t1 failed: no grant\r\n")
    await terminal.shows(f"databus: backfill a2 of {schema}.t2 was cancelled\r\n")
    assert await process.wait() == 1


async def test_watching_fails_if_the_pipeline_is_reset(requests: Requests, terminal: Terminal) -> None:
    await requests.request("a0", "t")
    process = await terminal.run("list", "--watch")
    await terminal.shows("waiting")
    await requests.write(backfill_key("a0"), None)
    await terminal.shows("databus: there is no longer a backfill a0: the pipeline was reset")
    assert await process.wait() == 1


async def test_without_a_terminal_start_waits_if_asked_and_shows_only_failures(
    requests: Requests, terminal: Terminal, schema: str, execute: Execute
) -> None:
    for table in ("items", "orders"):
        await execute(f"CREATE TABLE {table} (id INT PRIMARY KEY)")
    process = await terminal.run("start", f"{schema}.*", "--wait", stderr=asyncio.subprocess.PIPE)
    first, second = [await requested(process) for _ in range(2)]
    await requests.reach(first, state="done", rows=3)
    await requests.reach(second, state="failed", error="no grant")
    _, errors = await process.communicate()
    text = f"databus: backfill {second} of {schema}.orders failed: no grant\n"
    assert (process.returncode, errors.decode()) == (1, text)


async def test_there_may_be_nothing_to_watch(command: Command) -> None:
    assert await command("list", "--watch") == (0, [], [])


async def test_an_interrupt_ends_the_watching_and_not_the_backfill(
    requests: Requests, terminal: Terminal, schema: str, execute: Execute
) -> None:
    process, backfill = await started(terminal, schema, execute)
    process.send_signal(signal.SIGINT)
    await terminal.shows("no longer watching; the backfills continue: databus backfill list --watch")
    assert await process.wait() == 130
    assert "Traceback" not in terminal.text
    [found] = decode_states((await requests.records()).items()).backfills.values()
    assert isinstance(found, Backfill)
    assert (found.id, found.wanted) == (backfill, "run")
