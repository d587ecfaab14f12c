"""What a route may set for a Debezium format, in the words of the connectors' own settings."""

from typing import Literal

from pydantic import Field, HttpUrl, SecretStr

from databus_messages.formats import base

TimeMode = Literal["adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds"]


class Options(base.Options):
    """Of both formats."""

    #: first part of the names of schemas and of the format's own topics; empty: the pipeline's name
    prefix: str = Field("", pattern=r"^[A-Za-z0-9._-]*$")
    #: `source.version`
    version: str = "3.6.1.Final"
    decimal: Literal["precise", "double", "string"] = "precise"
    bigint_unsigned: Literal["long", "precise"] = "long"
    binary: Literal["bytes", "base64", "base64-url-safe", "hex"] = "bytes"
    time: TimeMode = "adaptive_time_microseconds"
    tombstones_on_delete: bool = True
    #: TRUNCATE (`t`) is left out unless this list lacks it
    skipped_operations: frozenset[Literal["c", "u", "d", "t"]] = frozenset({"t"})
    #: the statement, where the server logs it
    include_query: bool = False
    include_schema_changes: bool = True
    provide_transaction_metadata: bool = False
    #: at most one heartbeat in this time; 0: none
    heartbeat_interval_ms: int = Field(0, ge=0)


class JsonOptions(Options):
    """Of `debezium-json`."""

    #: each key and value brings its schema
    schemas_enable: bool = True


class AvroOptions(Options):
    """Of `debezium-avro`."""

    schema_registry_url: HttpUrl
    schema_registry_user: str = ""
    schema_registry_password: SecretStr = SecretStr("")
