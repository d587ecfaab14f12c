"""The section `redis`: the pipe between reader and publisher, and the leases of dumps."""

from databus.settings.values import Section


class RedisSection(Section):
    """The connection to Redis."""

    url: str = "redis://127.0.0.1:6379/0"
    """Address of Redis 7 or newer, with user and password if it requires them; `rediss://` encrypts the connection."""
