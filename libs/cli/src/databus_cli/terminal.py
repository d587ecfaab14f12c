"""What commands say on standard error; their results go to standard output."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)


def tell(text: str) -> None:
    """Say something in one line."""
    sys.stderr.write(f"databus: {text}\n")


@contextmanager
def byte_progress(total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a bar while somebody watches who does not see the results there too; yields what counts bytes.

    `total` is None where it is not known.
    """
    watched = sys.stderr.isatty() and not sys.stdout.isatty()
    with _bar(total, watched, DownloadColumn(), TransferSpeedColumn()) as advance:
        yield advance


@contextmanager
def record_progress(total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar while somebody watches; yields what counts records."""
    with _bar(total, sys.stderr.isatty(), MofNCompleteColumn()) as advance:
        yield advance


@contextmanager
def _bar(total: int | None, watched: bool, *columns: ProgressColumn) -> Iterator[Callable[[int], None]]:
    shown = (BarColumn(), *columns, TimeRemainingColumn())
    bar = Progress(*shown, console=Console(stderr=True), transient=True, redirect_stdout=False, disable=not watched)
    with bar:
        task = bar.add_task("", total=total)
        yield lambda count: bar.advance(task, count)
