"""A position in a log, and the description of a server."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from databus_binlog.gtid import Flavor


class Position(msgspec.Struct, frozen=True):
    """A position in a log: a GTID set, a file and offset, or both. If all are empty: the start of the oldest file."""

    gtid_set: str = ""  #: the transactions executed before the position; "": not known, or none
    file: str = ""
    offset: int = 0

    @property
    def log_order(self) -> tuple[int, int]:
        """Number of the file and offset: the order of positions in the log of one server."""
        return int(self.file.rpartition(".")[2]), self.offset


class Server(msgspec.Struct, frozen=True):
    """The description of a server."""

    flavor: Flavor
    version: str
    server_id: int
    uuid: str  #: MySQL's server_uuid or MariaDB's server_uid; "" if an old MariaDB has none
    gtid: bool  #: every transaction is logged with a GTID, so a position can be found on another host
    variables: Mapping[str, str]  #: by lower-case name, those of `description.VARIABLES` that the server has

    @property
    def identity(self) -> str:
        """A text that differs from server to server.

        MariaDB's server_uid is made of a network address and the port, which containers may share, and old servers
        have no server_uid. So on MariaDB the identity includes the server id.
        """
        return self.uuid if self.flavor == "mysql" and self.uuid else f"{self.uuid}/{self.server_id}"

    @property
    def semi_sync(self) -> bool:
        """Whether semi-synchronous replication is on: a commit waits until a replica acknowledges it."""
        return "ON" in {self.variables.get(f"rpl_semi_sync_{name}_enabled") for name in ("master", "source")}


def release(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a server's version."""
    numbers: list[int] = []
    for part in version.split("-", maxsplit=1)[0].split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)
