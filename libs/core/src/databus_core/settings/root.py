"""All sections together."""

import zlib
from typing import Self

from pydantic import model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from databus_core.settings.dumps import Dumps
from databus_core.settings.kafka import Kafka
from databus_core.settings.log import Log
from databus_core.settings.publisher import Publisher
from databus_core.settings.redis import RedisSection
from databus_core.settings.services import Backfills, Doubts, Reader, Spark
from databus_core.settings.source import Source
from databus_core.settings.topic_claims import topic_faults
from databus_core.settings.values import Name


class Settings(BaseSettings):
    """The complete configuration; `load` reads it from a file and the environment."""

    model_config = SettingsConfigDict(
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
        env_prefix="DATABUS__",
        env_nested_delimiter="__",
        nested_model_default_partial_update=True,
    )

    name: Name
    """Name of the pipeline; it is part of topics, Redis keys and Kafka's transactional id."""
    source: Source = Source()
    redis: RedisSection = RedisSection()
    kafka: Kafka = Kafka()
    reader: Reader = Reader()
    publisher: Publisher = Publisher()
    backfill: Backfills = Backfills()
    doubt: Doubts = Doubts()
    dumps: Dumps = Dumps()
    spark: Spark = Spark()
    log: Log = Log()

    @model_validator(mode="after")
    def _check_topics(self) -> Self:
        if faults := list(dict.fromkeys(topic_faults(self))):
            raise ValueError("\n".join(faults))
        return self

    @property
    def server_id(self) -> int:
        """Id of the reader among the server's replicas."""
        return self.reader.server_id or 2**31 + zlib.crc32(self.name.encode()) % 2**31

    @property
    def second_server_id(self) -> int:
        """The id of the reader's second connection for binlogs: a server ends an older one with the same id."""
        return 2**31 + zlib.crc32(b"second of %d" % self.server_id) % 2**31

    @property
    def command_server_id(self) -> int:
        """The id with which commands and checks read binlogs, beside both connections of the reader."""
        return 2**31 + zlib.crc32(b"skip of %d" % self.server_id) % 2**31

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Make the environment override the file."""
        return env_settings, init_settings
