"""What changes are read from."""

from collections.abc import Sequence
from dataclasses import dataclass

from databus_core.change_topics import ChangeTopics
from databus_core.dump_client import DumpApi
from databus_core.settings import Settings


@dataclass(frozen=True)
class Source:
    """A pipeline, and the tables that a program reads."""

    settings: Settings
    api: DumpApi
    #: patterns of `schema.table`
    tables: Sequence[str]
    topics: ChangeTopics
