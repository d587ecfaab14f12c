"""Real databases, Redis, Kafka and a schema registry as local processes, for demo, tests and benches."""

from devstack.server import KINDS, DevstackError, Kind, Server
from devstack.stack import Stack, Status

__all__ = ["KINDS", "DevstackError", "Kind", "Server", "Stack", "Status"]
