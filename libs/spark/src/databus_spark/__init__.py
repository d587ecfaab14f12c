"""The tables of a pipeline in Spark. For users' own jobs: read a table's changes, read its dump, keep a copy of it."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from databus_spark.apply import apply_changes
    from databus_spark.changes import read_changes
    from databus_spark.debezium import read_debezium_changes
    from databus_spark.dumps import Dump, read_dump
    from databus_spark.types import TypeOptions

__all__ = ["Dump", "TypeOptions", "apply_changes", "read_changes", "read_debezium_changes", "read_dump"]

_MODULES = {
    "Dump": "dumps",
    "apply_changes": "apply",
    "read_changes": "changes",
    "read_debezium_changes": "debezium",
    "read_dump": "dumps",
    "TypeOptions": "types",
}


def __getattr__(name: str) -> object:
    """Import on first use: the sink needs no HTTP client for a change log, and nobody a Kafka client for a dump."""
    if module := _MODULES.get(name):
        return getattr(import_module(f"databus_spark.{module}"), name)
    raise AttributeError(f"module 'databus_spark' has no attribute {name!r}")
