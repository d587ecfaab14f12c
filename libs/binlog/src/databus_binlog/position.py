"""A position in a log, and the description of a server."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from databus_binlog.gtid import Flavor


class Position(msgspec.Struct, frozen=True):
    """A position in a log, by transactions and by file; either may be missing. All empty: the oldest existing file."""

    gtid_set: str = ""  #: what was executed before; "" = not known, or nothing yet
    file: str = ""
    offset: int = 0


class Server(msgspec.Struct, frozen=True):
    """The description of a server."""

    flavor: Flavor
    version: str
    server_id: int
    uuid: str  #: "" on MariaDB before 10.5
    gtid: bool  #: it logs GTIDs, so a position can be found on another host
    variables: Mapping[str, str]  #: those of `session.VARIABLES` that it has, lower case

    @property
    def identity(self) -> str:
        """What identifies it among all servers.

        MariaDB's uid consists of a network address and the port, which containers may share, and old servers have none.
        So the identity includes the server id.
        """
        return self.uuid if self.flavor == "mysql" and self.uuid else f"{self.uuid}/{self.server_id}"

    @property
    def semi_sync(self) -> bool:
        """Its commits wait for replicas that acknowledge them."""
        return "ON" in {self.variables.get(f"rpl_semi_sync_{name}_enabled") for name in ("master", "source")}


def release(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a server's version."""
    numbers: list[int] = []
    for part in version.split("-", maxsplit=1)[0].split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)
