"""What tests of failovers use: one account on all hosts, and their addresses."""

from devstack import Server

ACCOUNT = {"user": "reader", "password": "reader"}
#: makes the account where the statements are replicated to all hosts
CREATE_ACCOUNT = (
    "CREATE USER reader@'%' IDENTIFIED BY 'reader'",
    "GRANT SELECT, RELOAD, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO reader@'%'",
)


def address(server: Server) -> str:
    """Give `host:port`, as `source.hosts` has it."""
    return f"{server.host}:{server.port}"
