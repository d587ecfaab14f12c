"""The tables that a command selects with `--tables PATTERN…`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from databus_binlog import Query

if TYPE_CHECKING:  # imported only where it is needed: the import takes a quarter of a second
    from databus_core.settings import Source

#: statements that show, without naming a table, which rows of a transaction take effect
_OUTCOMES = ([b"ROLLBACK"], [b"SAVEPOINT"], [b"RELEASE"], [b"XA"])


class Selection:
    """The tables that match `schema.table` patterns, except system tables; without patterns, all tables.

    Raises pydantic's ValidationError for another kind of pattern.
    """

    def __init__(self, patterns: Sequence[str] | None) -> None:
        self._source: Source | None = None
        if patterns:
            from databus_core.settings import Source

            self._source = Source(include=list(patterns))

    @property
    def captured(self) -> Source:
        """The tables that the reader would capture with these patterns; without patterns, all except system tables."""
        from databus_core.settings import Source

        return self._source or Source()

    def table(self, schema: str, name: str) -> bool:
        """Return whether a table's rows are selected."""
        return self._source is None or self._source.captures(schema, name)

    def statement(self, event: Query) -> bool:
        """Return whether a statement may concern selected tables, or the outcome of a transaction."""
        if self._source is None or event.query[:16].upper().split()[:1] in _OUTCOMES:
            return True
        text = event.query.decode(errors="replace")
        return self._source.captures_some(event.schema) or self._source.mentions_some(text)
