"""Progress on standard error, with the elapsed time: live lines on a terminal, plain lines elsewhere."""

import time
from typing import Self

from rich.console import Console
from rich.progress import Progress as Live
from rich.progress import SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn


class ProgressDisplay:
    """Shows the current step of each task. Tasks have names, usually kinds of servers. Several threads may use it.

    A terminal has one line for each task; elsewhere, each step is a line.
    """

    def __init__(self) -> None:
        console = Console(stderr=True, highlight=False)
        columns = (SpinnerColumn(finished_text=" "), TimeElapsedColumn(), TextColumn("{task.description}"))
        self._live = Live(*columns, console=console, disable=not console.is_terminal)
        self._tasks: dict[str, TaskID] = {}
        self._begin = time.monotonic()

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def say(self, name: str, text: str) -> None:
        """Show `text` as the current step of the task `name`."""
        if self._live.disable:
            self._live.console.print(f"[{time.monotonic() - self._begin:5.1f} s] {name}: {text}", markup=False)
        elif name not in self._tasks:
            self._tasks[name] = self._live.add_task(f"{name}: {text}", total=None)
        else:
            self._live.update(self._tasks[name], description=f"{name}: {text}")

    def done(self, name: str) -> None:
        """Stop the spinner and the clock of the task `name`."""
        if name in self._tasks:
            self._live.update(self._tasks[name], total=1, completed=1)
