"""Errors that concern one table."""

from databus_core.errors import DatabusError, LakeUnavailable


class TableParked(DatabusError):
    """A mirror cannot follow its table: the change log does not show any more what its rows are."""

    def __init__(self, reason: str, *, heals: bool = True, any_dump: bool = False) -> None:
        super().__init__(reason)
        #: whether the table can be mirrored after it is loaded again
        self.heals = heals
        #: whether any dump will do, because the change log has all changes: only the rows of before are missing
        self.any_dump = any_dump


class MirrorChanged(LakeUnavailable):
    """Another process has written to a mirror. What it is now must be read again."""


class CannotRebuild(DatabusError):
    """The lake does not have any more what rows a table had."""
