"""Requests of operators to load mirrors again: files in the lake, so that they outlive command and sink.

A request is a file that is named after its table and remains until the sink has loaded the table. Its content is what
the sink is doing about it.
"""

import secrets

from pyspark.sql import SparkSession

from databus_changes.tables import TableName
from databus_spark.folder import Folder
from databus_spark.layout import Layout, escaped, unescaped

#: begins the content of a request that the sink has given up
FAILED = "failed: "


class Requests:
    """The requests of a lake. Every method blocks, and may raise LakeUnavailable."""

    def __init__(self, spark: SparkSession, layout: Layout) -> None:
        self._folder = Folder(spark, layout.requests)

    def add(self, name: TableName) -> str:
        """Request that a table is loaded again, and return the request's id."""
        request = ".".join((*map(escaped, name), secrets.token_hex(4)))
        self._folder.write(request, "")
        return request

    def list(self) -> dict[str, TableName]:
        """Return the table of each request."""
        parts = [name.split(".") for name in self._folder.names()]
        return {".".join(each): (unescaped(each[0]), unescaped(each[1])) for each in parts if len(each) == 3}

    def report(self, request: str, text: str) -> None:
        """Say what is being done about a request."""
        self._folder.write(request, text)

    def text(self, request: str) -> str | None:
        """Return what is being done about a request. Empty: the sink has not seen it yet; None: it has ended."""
        return self._folder.read(request)

    def remove(self, request: str) -> None:
        """Remove a request."""
        self._folder.remove(request)
