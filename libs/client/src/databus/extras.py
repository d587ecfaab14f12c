"""Modules that need a package which only some programs need."""

from importlib import import_module
from types import ModuleType

from databus_core.errors import InvalidSettings


def of_extra(module: str, extra: str) -> ModuleType:
    """Import a module of this package. Raises InvalidSettings if the packages of the extra are not installed."""
    try:
        return import_module(f"databus.{module}")
    except ModuleNotFoundError as error:
        raise InvalidSettings(f"{error.name} is not installed: install the client as databus[{extra}]") from error
