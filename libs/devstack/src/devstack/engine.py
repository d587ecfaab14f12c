"""What Stack must know of a kind of server, and what one instance of it keeps."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from devstack.server import Kind, Say, Server


@dataclass(frozen=True)
class Instance:
    """A server's own folder with its data, its ports and its admin's password.

    The first port is for clients, the last ones are for proxies.
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
    #: The admin account; empty where there are no accounts.
    user: str
    #: How many ports an instance listens on.
    ports: int
    #: How many more it tells its clients of, for proxies to listen on.
    proxies: int
    #: Seconds that a start may take.
    timeout: float

    def install(self, say: Say) -> Path:
        """Return the cached installation; its folder `data`, if any, is what a new data directory starts as."""
        ...

    def command(self, installation: Path, instance: Instance) -> list[str]:
        """Write the instance's configuration and return the command that runs it."""
        ...

    async def ping(self, server: Server) -> None:
        """Log in and ask something; NotReadyError when it is not answered."""
        ...
