"""Runs a service that, on SIGUSR1, writes to its log where each of its tasks waits."""

import asyncio
import runpy
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from devstack.process import Process, spawn


def launch(command: list[str], log: Path) -> Process:
    """Start a service's program through this file. A pipeline uses this in place of `devstack.process.spawn`."""
    return spawn([sys.executable, "-P", __file__, *command], log)


def _write_tasks(_number: int, _frame: FrameType | None) -> None:
    try:
        tasks = asyncio.all_tasks()
    except RuntimeError:  # the event loop does not run yet
        return
    for task in tasks:
        sys.stderr.write(f"{task.get_name()}:\n")
        sys.stderr.writelines(f"  {frame}\n" for frame in _frames(task.get_coro()))
    sys.stderr.flush()


def _frames(awaited: Any) -> Iterator[str]:
    """List where a coroutine waits, from the outermost call to the innermost."""
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None)
        line = f":{frame.f_lineno}" if frame else ""
        yield f"{getattr(awaited, '__qualname__', type(awaited).__name__)}{line}"
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, _write_tasks)
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")
