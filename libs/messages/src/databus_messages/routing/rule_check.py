"""The check of `publisher.routes` against known tables, for `--check` of the services and for `databus check`."""

from collections.abc import Sequence
from typing import Protocol

from databus_core.checks import Check
from databus_core.events import Table
from databus_core.settings import Settings
from databus_messages.routing.filter import require_fit


class WithTables(Protocol):
    """What knows captured tables: those of a host, or those of the schema history."""

    @property
    def settings(self) -> Settings:
        """The settings that capture them."""
        ...

    async def captured(self) -> Sequence[Table]:
        """Read the captured tables."""
        ...


async def _rules(known: WithTables) -> str:
    require_fit(known.settings.publisher, await known.captured())
    return "the rules of publisher.routes fit the known tables"


RULES: Check[WithTables] = Check("rules", _rules)
