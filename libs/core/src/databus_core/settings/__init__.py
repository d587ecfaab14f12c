"""The configuration: one YAML file for all services, each of which uses its part.

Any value can be overridden by an environment variable, `DATABUS__SECTION__KEY`, and a secret can be given as a file
(`password_file`). The whole file is validated: each error names the key's path, and an unknown key is an error.
"""

from databus_core.settings.dumps import Dumps
from databus_core.settings.file import load
from databus_core.settings.kafka import Kafka
from databus_core.settings.log import Log
from databus_core.settings.publisher import Publisher
from databus_core.settings.redis import RedisSection
from databus_core.settings.root import Settings
from databus_core.settings.services import Election, Maintain, Reader, Spark, SparkTypes
from databus_core.settings.source import Source, SourceTls
from databus_core.settings.start import (
    AnyStart,
    StartAfterDump,
    StartAfterGtids,
    StartAt,
    StartAtTime,
    StartEarliest,
    StartLatest,
    StartSnapshot,
    parse_start,
)
from databus_core.settings.values import HttpUrl, Size, TablePattern, read_duration

__all__ = [
    "AnyStart",
    "Dumps",
    "Election",
    "HttpUrl",
    "Kafka",
    "Log",
    "Maintain",
    "Publisher",
    "Reader",
    "RedisSection",
    "Settings",
    "Size",
    "Source",
    "SourceTls",
    "Spark",
    "SparkTypes",
    "StartAfterDump",
    "StartAfterGtids",
    "StartAt",
    "StartAtTime",
    "StartEarliest",
    "StartLatest",
    "StartSnapshot",
    "TablePattern",
    "load",
    "parse_start",
    "read_duration",
]
