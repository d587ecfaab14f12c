"""Helpers for tests of failovers: one account on all hosts, and their addresses."""

from devstack import Server

ACCOUNT = {"user": "reader", "password": "reader"}
#: statements that create the account; the primary replicates them to all hosts
CREATE_ACCOUNT = (
    "CREATE USER reader@'%' IDENTIFIED BY 'reader'",
    "GRANT SELECT, RELOAD, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO reader@'%'",
)


def address(server: Server) -> str:
    """Return `host:port`, as `source.hosts` has it."""
    return f"{server.host}:{server.port}"
