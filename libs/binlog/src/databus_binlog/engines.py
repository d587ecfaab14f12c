"""The engines that read and decode a log: this package, or the library mysql-replication."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal, TypeAlias

from databus_binlog.errors import EngineUnavailable

Engine: TypeAlias = Literal["native", "mysql-replication"]


def require_installed(engine: Engine) -> None:
    """Raise EngineUnavailable if a package of the engine is not installed."""
    if engine != "native":
        library()


def library() -> Any:
    """Import databus_binlog.mysql_replication. Raises EngineUnavailable if its packages are not installed."""
    try:
        return import_module("databus_binlog.mysql_replication")
    except ModuleNotFoundError as error:
        advice = "pip install 'databus-binlog[mysql-replication]', or choose the engine native"
        raise EngineUnavailable(f"the engine mysql-replication is not installed ({error.name}): {advice}") from error
