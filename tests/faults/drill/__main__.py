"""`make drill`: the faults of a bad night, one after another, and what readiness, metrics, alerts and logs show."""

import argparse
import asyncio
import logging
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

from devstack import Stack
from devstack.pipeline import stop_services
from faults.drill.catalogue import FAULTS, Fault
from faults.drill.page import cells, clock, shown, write
from faults.drill.recorder import Moment, Recorder
from faults.drill.rig import Rig
from faults.volume import unmount

_HOME = Path(".devstack/drill").resolve()


def _say(moment: Moment) -> None:
    what = moment.note or " | ".join(cells(moment, Moment(-1), []))
    print(f"{clock(moment.at):>6}  {what}", flush=True)
    for line in moment.lines:
        print(f"          {line.replica} {line.event} {line.text}", flush=True)


async def _drill(faults: list[Fault], write: Callable[[dict[str, str]], None]) -> None:
    stack, home = Stack(_HOME / "servers", own=True), _HOME / "run"
    await asyncio.to_thread(_discard_left, stack, home)
    try:
        rig = await asyncio.to_thread(Rig, home, stack)
        begin = time.monotonic()
        async with rig.running():
            await rig.settled()
            for fault in faults:
                print(f"\n{fault.name}", flush=True)
                recorder = Recorder(rig, fault.name, _say)
                async with recorder.recording():
                    await fault.do(rig, recorder)
                    await recorder.until_quiet()
                write({fault.name: shown(recorder.record)})
        seconds, checker = time.monotonic() - begin, rig.checker
        conditions = (
            f"{os.cpu_count()} processors, MariaDB; {checker.transactions:,} transactions with {checker.rows:,} "
            f"rows that changed in {seconds / 60:.0f} minutes, {checker.rows / seconds:.0f} a second. At the end every "
            "change was in Kafka once and in order, but those of parked tables and those that the reset had left out. "
            f"The tables of a consumer were equal to those of the database; {checker.loaded_rows:,} rows were loaded."
        )
        print(f"\n{conditions}")
        if len(faults) == len(FAULTS):
            write({"conditions": conditions})
    finally:
        await asyncio.to_thread(stack.discard)


def _discard_left(stack: Stack, home: Path) -> None:
    """Stop and remove what a killed run has left."""
    stop_services(home / "pipeline")
    stack.discard()
    if (home / "dumps").is_mount():
        unmount(home / "dumps")
    shutil.rmtree(_HOME, ignore_errors=True)


def main() -> int:
    """Run the command line and return the exit code."""
    names = [fault.name for fault in FAULTS]
    parser = argparse.ArgumentParser(prog="make drill", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="FAULT", help=", ".join(names))
    parser.add_argument("--write", action="store_true", help="write what was seen to docs/operations/night-drill.md")
    options = parser.parse_args()
    for noisy in ("aiokafka", "asyncmy", "httpx"):
        logging.getLogger(noisy).setLevel(logging.CRITICAL)
    faults = [fault for fault in FAULTS if fault.name in options.only]
    asyncio.run(_drill(faults, write if options.write else lambda _: None))
    return 0


if __name__ == "__main__":
    sys.exit(main())
