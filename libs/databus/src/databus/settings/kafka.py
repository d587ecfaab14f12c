"""The section `kafka`: where the changes are published."""

from typing import Annotated

from pydantic import Field

from databus.settings.values import HostPort, Section


class Kafka(Section):
    """The connection to Kafka."""

    bootstrap_servers: Annotated[list[HostPort], Field(min_length=1)] = ["127.0.0.1:9092"]
    """Brokers to connect to first; they name the others."""
