"""A folder for the files of a dump, without a store."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from databus_core.manifest import DumpFile


class Folder:
    """An `Output` whose files stay where they are written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def publish(self, file: DumpFile) -> DumpFile:
        return file

    @contextmanager
    def local(self, file: DumpFile) -> Iterator[Path]:
        yield self.folder / file.name
