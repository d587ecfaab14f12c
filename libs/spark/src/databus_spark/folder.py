"""A folder of the lake, in any file system of Hadoop: what is put here, executors on all machines can read."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from databus_core.errors import InvalidSettings, LakeUnavailable

_UNKNOWN_SYSTEM = ("UnsupportedFileSystemException", "ClassNotFoundException", "NoClassDefFoundError")


class Folder:
    """A folder that need not exist yet. Every method blocks, and may raise InvalidSettings or LakeUnavailable."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.path = path
        self._spark = spark

    def inside(self, name: str) -> "Folder":
        """Return a folder in this one."""
        return Folder(self._spark, f"{self.path}/{name}")

    @property
    def exists(self) -> bool:
        """Whether it exists."""
        with self._system() as (system, path):
            return bool(system.exists(path))

    def size(self, name: str) -> int | None:
        """Return the bytes of a file; None if there is no such file."""
        with self._system(name) as (system, path):
            return int(system.getFileStatus(path).getLen()) if system.exists(path) else None

    def put(self, file: Path) -> None:
        """Move a local file into the folder, also over an older one. If this is interrupted, it may be shorter."""
        with self._system(file.name) as (system, path):
            system.copyFromLocalFile(True, True, self._java.Path(file.absolute().as_uri()), path)

    def names(self) -> list[str]:
        """List the names of what is in the folder; nothing if it does not exist."""
        with self._system() as (system, path):
            return [str(each.getPath().getName()) for each in system.listStatus(path)] if system.exists(path) else []

    def read(self, name: str) -> str | None:
        """Return the text of a small file; None if there is no such file."""
        with self._system(name) as (system, path):
            try:
                with closing(system.open(path)) as file:
                    return bytes(file.readAllBytes()).decode()
            except Py4JJavaError as error:
                if "FileNotFoundException" in _kinds(error.java_exception):
                    return None
                raise

    def write(self, name: str, text: str) -> None:
        """Write a small file, also over an older one. A reader, or an interruption, may see a part of it."""
        with self._system(name) as (system, path), closing(system.create(path, True)) as file:
            file.write(text.encode())

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""
        with self._system(name) as (system, path):
            system.delete(path, False)

    def delete(self) -> None:
        """Delete the folder and what is in it, if it exists."""
        with self._system() as (system, path):
            system.delete(path, True)

    def delete_older(self, seconds: float) -> None:
        """Delete what is in the folder if nothing in it was written for so long."""
        until = (time.time() - seconds) * 1000
        with self._system() as (system, path):
            for each in system.listStatus(path) if system.exists(path) else []:
                if _last_written(system, each) < until:
                    system.delete(each.getPath(), True)

    @property
    def _java(self) -> Any:
        return self._spark.sparkContext._jvm.org.apache.hadoop.fs  # type: ignore[union-attr]

    @contextmanager
    def _system(self, name: str = "") -> Iterator[tuple[Any, Any]]:
        """Yield the file system, and the path of the folder or of a file in it."""
        try:
            path = self._java.Path(f"{self.path}/{name}")
            system = path.getFileSystem(self._spark.sparkContext._jsc.hadoopConfiguration())
            # without the files of checksums, which a file that is replaced would not match for a moment
            is_local = system.getClass().getSimpleName() == "LocalFileSystem"
            yield system.getRawFileSystem() if is_local else system, path
        except Py4JJavaError as error:
            kinds = _kinds(error.java_exception)
            if any(kind in _UNKNOWN_SYSTEM for kind in kinds):
                scheme = self.path.partition(":")[0]
                raise InvalidSettings(
                    f"spark.lake: Spark has no file system for {scheme}:// – put its jars into the folder spark.jars"
                ) from error
            raise LakeUnavailable(f"{self.path}: {kinds[-1]} (check spark.lake and spark.conf)") from error


def _last_written(system: Any, status: Any) -> int:
    """Return when the newest file was written, in milliseconds. Object stores do not know it of folders."""
    times, files = [], system.listFiles(status.getPath(), True)
    while files.hasNext():
        times.append(int(files.next().getModificationTime()))
    return max(times, default=int(status.getModificationTime()))


def _kinds(error: Any) -> list[str]:
    """Return the names of the classes of an error in Java and its causes."""
    kinds = []
    while error is not None:
        kinds.append(str(error.getClass().getSimpleName()))
        error = error.getCause()
    return kinds
