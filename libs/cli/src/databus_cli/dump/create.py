"""`databus dump create`: request a dump, and wait until it has ended."""

import argparse
import asyncio
import sys

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from databus_cli.dump.listing import print_json
from databus_cli.dump.texts import amount, totals
from databus_cli.terminal import notice
from databus_core.cancellation import raise_if_cancelled
from databus_core.dump_client import DumpApi
from databus_core.manifest import Manifest, Mode, State


async def create(api: DumpApi, options: argparse.Namespace) -> int:
    """Request a dump and print its id; with `--wait`, wait. The exit code is 1 if it ends without a result."""
    manifest = await api.request(options.tables, Mode.CHUNKED if options.chunked else Mode.VIEW)
    if not options.json:
        sys.stdout.write(f"{manifest.id}\n")
        sys.stdout.flush()
    if sys.stderr.isatty() if options.wait is None else options.wait:
        manifest = await _wait(api, manifest)
    if options.json:
        print_json([manifest])
    if not manifest.state.ended or manifest.state is State.COMPLETE:
        return 0
    notice(f"dump {manifest.id} {manifest.state}: {manifest.error or 'no reason is known'}")
    return 1


async def _wait(api: DumpApi, manifest: Manifest) -> Manifest:
    try:
        with DumpBar() as bar:
            manifest = await api.wait(manifest, bar.show)
            raise_if_cancelled()
            return manifest
    except asyncio.CancelledError:
        notice(
            f"no longer waiting; dump {manifest.id} continues: databus dump show {manifest.id}; databus dump cancel "
            f"{manifest.id} ends it"
        )
        raise


class DumpBar:
    """A bar on standard error that shows how far a dump has come, if that is a terminal."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[counts]}", markup=False),
            console=console,
            disable=not console.is_terminal,
            redirect_stdout=False,
        )
        self._task = self._progress.add_task("dump", total=None, counts="")

    def __enter__(self) -> "DumpBar":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, manifest: Manifest) -> None:
        """Show a dump's progress; a dump API of an earlier version has only its state."""
        completed = total = None
        if manifest.state is State.COMPLETE:
            completed = total = totals(manifest)[0]
        elif progress := manifest.progress:
            completed, total = progress.rows, max(progress.estimated_rows, progress.rows) or None
        self._progress.update(
            self._task, description=manifest.state, completed=completed, total=total, counts=amount(manifest)
        )
