"""What commands write to standard error; their results go to standard output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from databus_core.errors import UsageError

if TYPE_CHECKING:  # imported only if a bar is shown: the import takes a fifth of a second
    from rich.progress import Progress


def notice(text: str) -> None:
    """Write one line to standard error."""
    sys.stderr.write(f"databus: {text}\n")


def confirmed(question: str) -> bool:
    """Ask a question with the answers yes and, by default, no. Raises UsageError if nobody can answer."""
    if not sys.stdin.isatty():
        raise UsageError("nothing was changed: standard input is not a terminal: confirm it with --yes")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def ask(question: str, default: str) -> str:
    """Ask for a text on the terminal. Raises UsageError at the end of the input."""
    sys.stderr.write(f"{question} [{default}]: ")
    sys.stderr.flush()
    if not (answer := sys.stdin.readline()):
        raise UsageError("the input ended before the last answer: nothing was written")
    return answer.strip() or default


@contextmanager
def byte_progress(total: int | None, *, beside_results: bool = True) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on a terminal, unless results go there meanwhile (`beside_results`).

    Yields a function to call with the size of each piece. `total` is the number of bytes, None if it is not known.
    """
    shown = sys.stderr.isatty() and not (beside_results and sys.stdout.isatty())
    with _progress(total, _byte_bar, shown=shown) as advance:
        yield advance


@contextmanager
def record_progress(total: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on a terminal; yields a function to call with the number of finished records."""
    with _progress(total, _record_bar, shown=sys.stderr.isatty()) as advance:
        yield advance


@contextmanager
def _progress(total: int | None, make_bar: Callable[[], Progress], *, shown: bool) -> Iterator[Callable[[int], None]]:
    if not shown:
        yield lambda count: None
        return
    with make_bar() as bar:
        task = bar.add_task("", total=total)
        yield lambda count: bar.advance(task, count)


def _byte_bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)


def _record_bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)
