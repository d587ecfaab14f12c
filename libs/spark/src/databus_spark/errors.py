"""Errors that concern one table."""

from databus.errors import DatabusError


class TableParked(DatabusError):
    """A mirror cannot follow its table: what its rows are cannot be told from the change log any more."""
