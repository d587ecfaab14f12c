"""Requests of operators to load mirrors again: files in the lake, so that they outlive command and sink.

A request is a file that is named after its table and remains until the sink has loaded the table. Its content is what
the sink is doing about it.
"""

import secrets
from contextlib import closing
from typing import Any, cast

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from databus_spark.changelog import TableName
from databus_spark.layout import Layout, escaped, unescaped

#: begins the content of a request that the sink has given up
FAILED = "failed: "


class Requests:
    """The requests of a lake."""

    def __init__(self, spark: SparkSession, layout: Layout) -> None:
        # Hadoop's file systems have no interface for Python.
        self._jvm = cast(Any, spark.sparkContext._jvm)
        self._folder = self._jvm.org.apache.hadoop.fs.Path(layout.requests)
        settings = spark.sparkContext._jsc.hadoopConfiguration()
        # An instance of its own, without checksums: a file may be read while it is replaced.
        self._files = self._jvm.org.apache.hadoop.fs.FileSystem.newInstance(self._folder.toUri(), settings)
        self._files.setWriteChecksum(False)
        self._files.setVerifyChecksum(False)
        self._files.mkdirs(self._folder)

    def add(self, name: TableName) -> str:
        """Request that a table is loaded again, and return the request's id."""
        request = ".".join((*map(escaped, name), secrets.token_hex(4)))
        self._files.createNewFile(self._path(request))
        return request

    def list(self) -> dict[str, TableName]:
        """Return the table of each request."""
        parts = [file.getPath().getName().split(".") for file in self._files.listStatus(self._folder)]
        return {".".join(each): (unescaped(each[0]), unescaped(each[1])) for each in parts if len(each) == 3}

    def report(self, request: str, text: str) -> None:
        """Say what is being done about a request."""
        with closing(self._files.create(self._path(request), True)) as file:
            file.write(text.encode())

    def text(self, request: str) -> str | None:
        """Return what is being done about a request. Empty: the sink has not seen it yet; None: it has ended."""
        try:
            with closing(self._files.open(self._path(request))) as file:
                return str(self._jvm.org.apache.commons.io.IOUtils.toString(file, "UTF-8"))
        except Py4JJavaError as error:
            if "FileNotFoundException" in str(error):
                return None
            raise

    def remove(self, request: str) -> None:
        """Remove a request."""
        self._files.delete(self._path(request), False)

    def _path(self, request: str) -> JavaObject:
        return self._jvm.org.apache.hadoop.fs.Path(self._folder, request)
