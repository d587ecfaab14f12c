"""The interface of a kind of server, and the state of one instance of it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from devstack.server import Kind, Say, Server


@dataclass(frozen=True)
class Instance:
    """The folder of a server, its ports, and its admin password.

    The first port is for clients; the last ones are for proxies, if the engine has `proxies`.
    """

    folder: Path
    ports: tuple[int, ...]
    password: str

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.folder / "data"


class Engine(Protocol):
    """One kind of server."""

    kind: Kind
    #: The admin account; empty for servers without accounts.
    user: str
    #: Number of ports an instance listens on.
    ports: int
    #: Number of further ports that an instance advertises to its clients, for proxies to listen on.
    proxies: int
    #: Seconds that a start may take.
    timeout: float

    def install(self, say: Say) -> Path:
        """Return the cached installation, made if necessary. New instances get a copy of its folder `data`, if any."""
        ...

    def command(self, installation: Path, instance: Instance) -> list[str]:
        """Write the instance's configuration and return the command that runs it."""
        ...

    async def ping(self, server: Server) -> None:
        """Log in and send a request. Raises NotReadyError if the server is not ready."""
        ...
