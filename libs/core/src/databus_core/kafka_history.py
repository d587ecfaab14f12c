"""The schema history in Kafka: tables and default character sets of the captured schemas, at the pipeline's progress.

The topic is compacted. With `exactly_once` it is written in the same transactions as the progress, else before the
progress, so it may be ahead. The first commit also writes a head record. A history without a head record does not go
back to the pipeline's start, and may lack tables. The history starts with all tables of the captured schemas. If the
binlog names columns, that is so only for a pipeline that starts at the end of the binlog (`latest` or `snapshot`); at
any other position the history starts empty. A table is in doubt if the columns of its rows
are named neither in the binlog nor in the history.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from databus_core import names
from databus_core.errors import START_OVER, SchemaHistoryCorrupt
from databus_core.events import Table
from databus_core.kafka_compacted import read_latest
from databus_core.settings import Settings

#: value of the head record
HEAD = b"1"
#: value of the record of a waiting table
WAITING = b"1"

encode_table = msgspec.json.Encoder().encode
encode_charset = msgspec.json.Encoder().encode
_decode_name = msgspec.json.Decoder(tuple[str, ...]).decode
_decode_table = msgspec.json.Decoder(Table).decode
_decode_charset = msgspec.json.Decoder(str).decode


@dataclass
class SchemaHistory:
    """The schemas at the pipeline's progress."""

    #: (schema, table) → definition of the table
    tables: dict[tuple[str, str], Table] = field(default_factory=dict)
    #: schema → its default character set
    charsets: dict[str, str] = field(default_factory=dict)
    #: (schema, table) of tables whose topic belongs to another table (`databus_core.settings.topic_claims`)
    waiting: set[tuple[str, str]] = field(default_factory=set)
    #: whether there is a head record; if so, the history began with the pipeline, and lacks no table it should have
    complete: bool = False

    def by_claim(self) -> list[tuple[str, str]]:
        """List the tables in the order in which they claim their topics: a table that waits does not take one over."""
        return sorted(self.tables, key=lambda name: (name in self.waiting, name))


async def read_history(settings: Settings) -> SchemaHistory:
    """Read the committed history. It is empty if the topic does not exist; the topic is not created.

    Raises KafkaUnavailable, FatalError if Kafka refuses access, and SchemaHistoryCorrupt for a record that cannot be
    read.
    """
    return decode_history((await read_history_records(settings)).items())


async def read_history_records(settings: Settings) -> dict[bytes, bytes]:
    """Read the latest committed value of each key that is not deleted; none if the topic does not exist.

    Raises KafkaUnavailable, and FatalError if Kafka refuses access.
    """
    records, _ = await read_latest(settings.kafka, names.schema_topic(settings.name))
    return records


def decode_history(records: Iterable[tuple[bytes, bytes]]) -> SchemaHistory:
    """Decode the latest record of each key of the topic. Raises SchemaHistoryCorrupt."""
    history = SchemaHistory()
    try:
        for key, value in records:
            match _decode_name(key):
                case (schema, name):
                    history.tables[schema, name] = _decode_table(value)
                case ("", schema, name):
                    history.waiting.add((schema, name))
                case (schema,):
                    history.charsets[schema] = _decode_charset(value)
                case ():
                    history.complete = value == HEAD
                case _:
                    raise _corrupt("it has an unknown key")
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _corrupt(str(error)) from error
    return history


def _corrupt(reason: str) -> SchemaHistoryCorrupt:
    return SchemaHistoryCorrupt(f"the schema history in Kafka cannot be read: {reason}; {START_OVER}")
