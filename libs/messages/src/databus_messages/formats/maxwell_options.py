"""Options of the `maxwell-json` format, with Maxwell's own names and defaults."""

from typing import Literal, TypeAlias

from databus_messages.formats.base import Options

KeyFormat: TypeAlias = Literal["hash", "array"]


class MaxwellOptions(Options):
    """Maxwell's output settings."""

    output_commit_info: bool = True
    output_xoffset: bool = False
    output_row_query: bool = False
    output_binlog_position: bool = False
    output_gtid_position: bool = False
    output_server_id: bool = False
    output_thread_id: bool = False
    output_primary_keys: bool = False
    output_primary_key_columns: bool = False
    output_nulls: bool = True
    output_null_zerodates: bool = False
    output_ddl: bool = False
    #: topic of DDL messages; None: the topic of the table's rows
    ddl_kafka_topic: str | None = None
    kafka_key_format: KeyFormat = "hash"
