"""For tests of backfill requests: a pipeline that has begun, and what its topic of table states contains."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaProducer

from common.waiting import eventually
from databus_core import kafka_client
from databus_core.kafka_compacted import read_latest
from databus_core.kafka_table_states import write_backfills
from databus_core.kafka_topics import partition_counts
from databus_core.names import table_states_topic
from databus_core.pipeline_state import ensure_state_topics
from databus_core.settings import Settings
from databus_core.table_states import Backfill, BackfillProgress, encode, progress_key
from devstack import Server


@dataclass
class Requests:
    """A pipeline of the test's own, of which only the state topics exist."""

    settings: Settings
    #: its configuration file
    config: Path

    async def begin(self) -> None:
        """Create the topics, as the publisher does, and wait until the broker knows them."""
        async with kafka_client.admin(self.settings.kafka) as admin:
            await ensure_state_topics(admin, self.settings)

            async def known() -> bool:
                return table_states_topic(self.settings.name) in await partition_counts(admin)

            await eventually(known)

    async def records(self) -> dict[bytes, bytes]:
        """Read the topic of table states."""
        found, _ = await read_latest(self.settings.kafka, table_states_topic(self.settings.name))
        return found

    async def request(self, backfill: str, table: str, **fields: Any) -> Backfill:
        """Write a request, as a client does."""
        request = Backfill(id=backfill, schema=self.settings.name, table=table, **fields)
        await write_backfills(self.settings, [request])
        return request

    async def reach(self, backfill: str, **progress: Any) -> None:
        """Write a backfill's progress, as the publisher does."""
        await self.write(progress_key(backfill), encode(BackfillProgress(**progress)))

    async def write(self, key: bytes, value: bytes | None) -> None:
        """Write a record."""
        [broker] = self.settings.kafka.bootstrap_servers
        async with AIOKafkaProducer(bootstrap_servers=broker) as producer:
            await producer.send_and_wait(table_states_topic(self.settings.name), value, key, partition=0)


def make_requests(source: Server, kafka: Server, schema: str, folder: Path, **sections: Any) -> Requests:
    """Configure a pipeline that captures the schema, by whose name it is called; `sections` are settings to add."""
    login = {"hosts": [f"{source.host}:{source.port}"], "user": source.user, "password": source.password}
    values = {
        "name": schema,
        "source": login | {"include": [f"{schema}.*"], "exclude": ["*.hidden"]} | sections.pop("source", {}),
        "kafka": {"bootstrap_servers": [kafka.url]},
    } | sections
    config = folder / "databus.yaml"
    config.write_text(json.dumps(values))
    return Requests(Settings.model_validate(values), config)
