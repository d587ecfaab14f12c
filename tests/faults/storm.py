"""`make faults`: injects random faults into a pipeline while clients request backfills, and reports the result.

The same seed gives the same faults.
"""

import argparse
import asyncio
import logging
import re
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import median

from rich.console import Console
from rich.table import Table

from devstack import Kind, Stack
from devstack.replication import Pair
from faults.catalogue import FAULTS, Fault
from faults.checker import Stuck
from faults.copies import Violation
from faults.rig import LAYOUTS, Rig

_HOME = Path(".devstack/faults")
_KINDS: tuple[Kind, ...] = ("redis", "kafka")


@dataclass
class Storm:
    """The report of one run."""

    seed: int
    layout: str
    #: name of a fault → seconds from its beginning until the pipeline worked again, each time
    faults: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    transactions: int = 0
    rows: int = 0
    messages: int = 0
    lost_answers: int = 0
    #: transactions that were prepared first, and those of them that another session has decided
    two_phases: int = 0
    decided_elsewhere: int = 0
    loaded_rows: int = 0
    truncates: int = 0
    #: what clients requested, and how backfills have ended → how often
    backfills: dict[str, int] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)
    #: transactions that the client delivered, and how often its program was killed
    delivered: int = 0
    lives: int = 0
    failure: str = ""


def drawn(random: Random, kinds: list[Fault]) -> Iterator[Fault]:
    """Draw faults for ever, in rounds: each round has every kind once."""
    while True:
        yield from random.sample(kinds, len(kinds))


async def storm(
    home: Path,
    pair: Pair,
    stack: Stack,
    seed: int,
    count: int,
    kinds: list[Fault],
    say: Callable[[str], None] = lambda _: None,
) -> Storm:
    """Inject `count` faults, each after evidence that the pipeline has recovered from the previous one."""
    random = Random(seed)
    done = Storm(seed, random.choice(list(LAYOUTS)))
    rig = Rig(home, pair, stack, seed, done.layout)
    faults = drawn(random, kinds)
    name = "start"
    try:
        async with rig.running():
            for number in range(1, count + 1):
                name, do, _ = next(faults)
                begin = time.monotonic()
                await do(rig, random)
                await rig.progress()
                done.faults[name].append(time.monotonic() - begin)
                say(f"{number:3} {name}: {done.faults[name][-1]:.1f} s")
                await rig.progress(random.randint(1, 30))
            name = "end"
    except* (Violation, Stuck) as group:
        done.failure = "; ".join(f"{error} (last fault: {name})" for error in group.exceptions)
    checker = rig.checker
    done.transactions, done.rows, done.messages = checker.transactions, checker.rows, checker.messages
    done.loaded_rows, done.truncates, done.backfills = checker.loaded_rows, checker.truncates, dict(rig.clients.done)
    done.delivered, done.lives = rig.follower.transactions, rig.follower.lives
    done.two_phases = sum(len(writer.two_phases) for writer in rig.writers)
    done.decided_elsewhere = sum(writer.decided_elsewhere for writer in rig.writers)
    done.lost_answers, done.ends = sum(writer.lost_answers for writer in rig.writers), dict(rig.ends)
    return done


def show(done: Storm, console: Console, seconds: float) -> None:
    """Print the report."""
    table = Table("fault", "times", "median s", "longest s", title=f"seed {done.seed}, {done.layout}")
    for name, times in sorted(done.faults.items()):
        table.add_row(name, str(len(times)), f"{median(times):.1f}", f"{max(times):.1f}")
    table.add_section()
    table.add_row("all", str(sum(map(len, done.faults.values()))), "", f"{seconds:.0f}")
    console.print(table)
    console.print(
        f"{done.transactions:,} transactions, {done.rows:,} row changes, {done.messages:,} messages; "
        f"{done.two_phases:,} prepared first, {done.decided_elsewhere} of them decided in another session; "
        f"{done.lost_answers} commits whose answer was lost"
    )
    texts = [f"{number} {what}" for what, number in sorted(done.backfills.items())]
    console.print(f"backfills: {', '.join(texts)}; {done.loaded_rows:,} rows, {done.truncates} TRUNCATEs")
    console.print(f"the client delivered {done.delivered:,} transactions to a program with {done.lives} lives")
    for words, often in done.ends.items():
        console.print(f"a service ended by itself, {often} times: {words}", highlight=False, markup=False)
    if done.failure:
        console.print(f"[red]FAILED[/]: {done.failure}", soft_wrap=True)
    else:
        console.print(
            "[green]every change arrived once, in order, in its complete transaction; all tables are equal[/]"
        )


async def _run(options: argparse.Namespace, kinds: list[Fault], console: Console) -> Storm:
    home = _HOME / options.server
    stack, pair = Stack(home / "servers", own=True), Pair(home / "pair", options.server)

    def say(text: str) -> None:
        console.print(f"[dim]{text}[/]", highlight=False)

    await _stop(stack, pair)  # servers that a killed run has left
    shutil.rmtree(home, ignore_errors=True)
    try:
        await asyncio.gather(pair.start(), *(asyncio.to_thread(stack.start, kind) for kind in _KINDS))
        return await storm(home / "pipeline", pair, stack, options.seed, options.faults, kinds, say)
    finally:
        await _stop(stack, pair)


async def _stop(stack: Stack, pair: Pair) -> None:
    await asyncio.gather(pair.discard(), asyncio.to_thread(stack.discard))


def main() -> int:
    """Run the command line and return the exit code."""
    parser = argparse.ArgumentParser(prog="make faults", description=__doc__)
    parser.add_argument("--faults", type=int, default=100, metavar="N", help="how many (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="repeat the run with this seed (default: a new one)")
    parser.add_argument("--server", choices=["mariadb", "mysql"], default="mariadb")
    parser.add_argument("--only", default="", metavar="REGEX", help="only faults whose names match")
    options = parser.parse_args()
    kinds = [fault for fault in FAULTS if re.search(options.only, fault.name)]
    if not kinds:
        parser.error(f"no fault has a name that matches {options.only!r}")
    options.seed = Random().randrange(10**6) if options.seed is None else options.seed
    for noisy in ("aiokafka", "asyncmy"):
        logging.getLogger(noisy).setLevel(logging.CRITICAL)
    console = Console()
    console.print(f"{options.faults} faults on {options.server}, seed {options.seed}")
    begin = time.monotonic()
    try:
        done = asyncio.run(_run(options, kinds, console))
    except KeyboardInterrupt:
        return 130
    show(done, console, time.monotonic() - begin)
    return 1 if done.failure else 0


if __name__ == "__main__":
    sys.exit(main())
