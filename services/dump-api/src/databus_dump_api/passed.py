"""Record in the manifests of complete dumps when the pipeline had passed their positions.

From the offsets of that moment on, all records are newer than the dump, so a consumer that begins there needs neither
to wait nor to compare positions. If several replicas do it, whichever moment is recorded is right.
"""

import asyncio

from aiokafka import TopicPartition

from databus_core import kafka_client, names
from databus_core.errors import DumpUnusable
from databus_core.kafka_progress import read_progress
from databus_core.kafka_topics import partitions_of
from databus_core.manifest import Manifest, State
from databus_core.pipeline_passed import moment_after
from databus_core.settings import Settings
from databus_dump_api.store import DumpStore
from databus_dump_api.tables import table_topics

#: seconds between two looks for complete dumps
_PAUSE_SECONDS = 2.0


class DumpTopics:
    """The topics of the tables of a dump, and that of dead letters."""

    def __init__(self, settings: Settings, manifest: Manifest) -> None:
        self._settings = settings
        letters = names.dead_letter_topic(settings.name)
        self.names = {letters}.union(*(table_topics(settings, table) for table in manifest.tables))

    async def partitions(self) -> list[TopicPartition]:
        """List the partitions of those that exist. Raises KafkaUnavailable, and FatalError if Kafka refuses access."""
        async with kafka_client.admin(self._settings.kafka) as admin:
            return await partitions_of(admin, self.names.__contains__)


async def record_passed(settings: Settings, store: DumpStore) -> None:
    """Record when the pipeline has passed each dump, forever.

    Raises KafkaUnavailable, the errors of the storage, and FatalError if Kafka refuses access.
    """
    failed_over: set[str] = set()
    while settings.publisher.delivery == "exactly_once":  # otherwise the progress says nothing about the topics' ends
        waiting = [each for each in await store.newest_first() if each.state is State.COMPLETE and each.passed is None]
        for manifest in waiting:
            if manifest.id in failed_over:
                continue
            try:
                progress = await read_progress(settings)
                if moment := await moment_after(settings, manifest, DumpTopics(settings, manifest), progress):
                    await store.pass_by(manifest.id, moment)
            except DumpUnusable:
                failed_over.add(manifest.id)
        await asyncio.sleep(_PAUSE_SECONDS)
    await asyncio.Event().wait()
