"""What commands say on standard error; their results go to standard output."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn


def tell(text: str) -> None:
    """Say something in one line."""
    sys.stderr.write(f"databus: {text}\n")


@contextmanager
def byte_progress(total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a bar while somebody watches who does not see the results there too; yields what counts bytes.

    `total` is None where it is not known.
    """
    watched = sys.stderr.isatty() and not sys.stdout.isatty()
    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False, disable=not watched)
    with bar:
        task = bar.add_task("", total=total)
        yield lambda count: bar.advance(task, count)
