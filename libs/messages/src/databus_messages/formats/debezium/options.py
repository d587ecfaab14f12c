"""Options of the Debezium formats, named after the connectors' own settings."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, HttpUrl, SecretStr

from databus_messages.formats.base import Options

TimeMode = Literal["adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds"]


class DebeziumOptions(Options):
    """Options of both formats."""

    #: `topic.prefix`: part of the names of tables' schemas and of metadata topics; empty: the pipeline's name
    prefix: str = Field("", pattern=r"^[A-Za-z0-9._-]*$")
    #: the version of Debezium in `source.version`
    version: str = "3.6.1.Final"
    decimal: Literal["precise", "double", "string"] = "precise"
    bigint_unsigned: Literal["long", "precise"] = "long"
    #: columns declared as BOOL or BOOLEAN: `declared`: boolean, where the declaration is known; `number`: as TINYINT(1)
    boolean: Literal["declared", "number"] = "declared"
    binary: Literal["bytes", "base64", "base64-url-safe", "hex"] = "bytes"
    time: TimeMode = "adaptive_time_microseconds"
    #: the value of a column that the binlog lacks (`publisher.publish_partial`); in columns of bytes, its UTF-8
    unavailable_value_placeholder: str = "__debezium_unavailable_value"
    tombstones_on_delete: bool = True
    #: operations without a record in the table's topic; by default TRUNCATE (`t`)
    skipped_operations: frozenset[Literal["c", "u", "d", "t"]] = frozenset({"t"})
    #: publish the statement in `source.query`, if the server logs statements
    include_query: bool = False
    include_schema_changes: bool = True
    provide_transaction_metadata: bool = False
    #: minimum time between heartbeats in ms; 0: no heartbeats
    heartbeat_interval_ms: int = Field(0, ge=0)


class JsonOptions(DebeziumOptions):
    """Options of `debezium-json`."""

    #: whether each key and value contains its schema
    schemas_enable: bool = True


def _require_no_login(url: HttpUrl) -> HttpUrl:
    """Refuse a login in a URL, because errors and logs quote the URL."""
    if url.username or url.password:
        raise ValueError("must not contain a login: set schema_registry_user and schema_registry_password")
    return url


class AvroOptions(DebeziumOptions):
    """Options of `debezium-avro`."""

    schema_registry_url: Annotated[HttpUrl, AfterValidator(_require_no_login)]
    schema_registry_user: str = ""
    schema_registry_password: SecretStr = SecretStr("")
