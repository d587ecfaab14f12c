"""The tables that a command selects: `--tables PATTERN…`."""

import argparse
from collections.abc import Sequence

from pydantic import ValidationError

from databus.settings import Source
from databus_binlog import Query

#: statements that decide what becomes of the rows before them
_OUTCOMES = ([b"ROLLBACK"], [b"SAVEPOINT"], [b"RELEASE"], [b"XA"])


def add_tables(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the option; `what` names what is selected."""
    parser.add_argument(
        "--tables",
        nargs="+",
        action="extend",
        type=_pattern,
        metavar="PATTERN",
        help=f"only {what}; schema.table with * and ?, as in source.include",
    )


def _pattern(text: str) -> str:
    try:
        Selection([text])
    except ValidationError:
        raise argparse.ArgumentTypeError(f"{text!r} is no schema.table pattern") from None
    return text


class Selection:
    """The tables of `schema.table` patterns, all without any. Raises pydantic's ValidationError."""

    def __init__(self, patterns: Sequence[str] | None) -> None:
        self._source = Source(include=list(patterns)) if patterns else None

    @property
    def captured(self) -> Source:
        """The tables that the reader would capture with these patterns; without any, all but system tables."""
        return self._source or Source()

    def table(self, schema: str, name: str) -> bool:
        """Return whether rows of a table are selected."""
        return self._source is None or self._source.captures(schema, name)

    def statement(self, event: Query) -> bool:
        """Return whether a statement may concern selected tables."""
        if self._source is None or event.query[:16].upper().split()[:1] in _OUTCOMES:
            return True
        text = event.query.decode(errors="replace")
        return self._source.captures_some(event.schema) or self._source.mentions_some(text)
