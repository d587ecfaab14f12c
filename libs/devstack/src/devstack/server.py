"""Servers, and the environment variables that name existing ones."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, get_args
from urllib.parse import unquote, urlsplit

Kind = Literal["mariadb", "mysql", "redis", "kafka", "kafka-secure", "registry", "postgresql", "prometheus"]
KINDS: tuple[Kind, ...] = get_args(Kind)

#: For each kind, the environment variable with the address of an existing server to use, and the form of its value.
#: There is no variable for `kafka-secure`, because clients also need its certificates.
VARIABLES: dict[Kind, tuple[str, str]] = {
    "mariadb": ("DEVSTACK_MARIADB_URL", "mysql://user:password@host:port"),
    "mysql": ("DEVSTACK_MYSQL_URL", "mysql://user:password@host:port"),
    "redis": ("DEVSTACK_REDIS_URL", "redis://host:port/0"),
    "kafka": ("DEVSTACK_KAFKA_BOOTSTRAP", "host:port"),
    "registry": ("DEVSTACK_REGISTRY_URL", "http://host:port/path"),
    "postgresql": ("DEVSTACK_POSTGRESQL_URL", "postgresql://user:password@host:port"),
    "prometheus": ("DEVSTACK_PROMETHEUS_URL", "http://host:port"),
}

#: environment variable with the path of an existing Chromium to use
CHROMIUM = "DEVSTACK_CHROMIUM"

#: Called with a few words about the current step.
Say = Callable[[str], None]


class DevstackError(Exception):
    """A step failed. The message says which one and, if that is known, what to do; in one line if possible."""


class NotReadyError(Exception):
    """The server does not answer yet. The message says why."""


@dataclass(frozen=True, kw_only=True)
class Server:
    """A running server and the account to use."""

    kind: Kind
    host: str
    port: int
    user: str = ""
    password: str = field(default="", repr=False)
    #: in the form that VARIABLES has for this kind; for Kafka that is `host:port`
    url: str = field(repr=False)


async def require_listening(server: Server) -> None:
    """Connect to the server's port, and disconnect. Raises NotReadyError if that fails or takes longer than 5 s."""
    try:
        async with asyncio.timeout(5):
            _, writer = await asyncio.open_connection(server.host, server.port)
    except OSError as error:
        raise NotReadyError(str(error) or "no answer within 5 s") from error
    writer.close()


def at(kind: Kind, host: str, port: int, user: str = "", password: str = "") -> Server:
    """Return a description of the server at this address."""
    url = {
        "mariadb": f"mysql://{user}:{password}@{host}:{port}",
        "mysql": f"mysql://{user}:{password}@{host}:{port}",
        "redis": f"redis://{host}:{port}/0",
        "kafka": f"{host}:{port}",
        "kafka-secure": f"{host}:{port}",
        "registry": f"http://{host}:{port}/apis/ccompat/v7",
        "postgresql": f"postgresql://{user}:{password}@{host}:{port}",
        "prometheus": f"http://{host}:{port}",
    }[kind]
    return Server(kind=kind, host=host, port=port, user=user, password=password, url=url)


def given(kind: Kind) -> Server | None:
    """Return the server of this kind that an environment variable names; None if no variable is set.

    Raises DevstackError if the value does not have the right form.
    """
    if kind not in VARIABLES:
        return None
    variable, form = VARIABLES[kind]
    value = os.environ.get(variable, "")
    if not value:
        return None
    parts = urlsplit(value if "://" in value else f"{kind}://{value}")
    try:
        port = parts.port
    except ValueError:
        port = None
    if not parts.hostname or not port:
        raise DevstackError(f"{variable} must have the form {form}")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return Server(kind=kind, host=parts.hostname, port=port, user=user, password=password, url=value)
