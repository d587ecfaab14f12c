"""Errors that concern one table."""

from databus.errors import DatabusError


class TableParked(DatabusError):
    """A mirror cannot follow its table: what its rows are cannot be told from the change log any more."""

    def __init__(self, reason: str, *, heals: bool = True) -> None:
        super().__init__(reason)
        #: whether the table can be mirrored after it is loaded again
        self.heals = heals


class CannotRebuild(DatabusError):
    """The lake does not tell any more what rows a table had."""
