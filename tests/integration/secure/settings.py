"""The section `kafka` of a configuration, for tests of logins and certificates."""

import copy
from typing import Any

from databus_core.kafka_client import admin
from databus_core.kafka_topics import partition_counts
from databus_core.settings import Kafka

Section = dict[str, Any]


def but(section: Section, **changed: Any) -> Section:
    """Return a copy of a section with these values; a dict is merged into the subsection of that name."""
    section = copy.deepcopy(section)
    for key, value in changed.items():
        section[key] = section.get(key, {}) | value if isinstance(value, dict) else value
    return section


async def count_topics(section: Section) -> int:
    async with admin(Kafka.model_validate(section)) as client:
        return len(await partition_counts(client))
