"""What dump-api tells its clients about the pipeline: enough to read its changes from Kafka, and no secret."""

from collections.abc import Mapping
from typing import Any

import msgspec
from pydantic import ValidationError

from databus_core.errors import InvalidSettings
from databus_core.routes import described
from databus_core.settings import Settings
from databus_core.settings.faults import describe


class KafkaDescription(msgspec.Struct, frozen=True):
    """How Kafka is reached, without the login."""

    bootstrap_servers: list[str]
    security_protocol: str


class PipelineDescription(msgspec.Struct, frozen=True):
    """A pipeline, and how it publishes to output `default`."""

    name: str
    kafka: KafkaDescription
    #: how long publishing a transaction may take, in seconds
    transaction_timeout: float
    delivery: str
    #: rules of output `default`, as in `publisher.routes`
    routes: list[dict[str, Any]]


def description_of(settings: Settings) -> PipelineDescription:
    """Describe a pipeline."""
    publisher, kafka = settings.publisher, settings.kafka
    return PipelineDescription(
        settings.name,
        KafkaDescription(kafka.bootstrap_servers, kafka.security_protocol),
        publisher.transaction_timeout,
        publisher.delivery,
        described(publisher.rules),
    )


def settings_of(description: PipelineDescription, url: str, kafka: Mapping[str, Any]) -> Settings:
    """Make the settings of a client of dump-api at this URL; `kafka` has further settings of the section `kafka`.

    Raises InvalidSettings.
    """
    values = {
        "name": description.name,
        "kafka": msgspec.to_builtins(description.kafka) | dict(kafka),
        "publisher": {
            "routes": description.routes,
            "delivery": description.delivery,
            "transaction_timeout": description.transaction_timeout,
            "salt": "a client hashes nothing",  # rules with `hash` require one
        },
        "dumps": {"url": url},
    }
    try:
        return Settings(**values)
    except ValidationError as error:
        faults = (f"{'.'.join(map(str, each['loc']))}: {describe(Settings, each)}" for each in error.errors())
        raise InvalidSettings("\n".join(faults)) from error
