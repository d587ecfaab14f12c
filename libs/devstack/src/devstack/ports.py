"""Free ports on 127.0.0.1."""

import secrets
import socket

HOST = "127.0.0.1"
#: Below the range that Linux takes the ports of outgoing connections from: a port stays free over a restart.
_PORTS = range(20000, 32000)


def is_free(port: int) -> bool:
    """Say whether nobody listens on the port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def free_ports(count: int) -> tuple[int, ...]:
    """Choose at random: two stacks that start at once shall not choose the same."""
    found: set[int] = set()
    while len(found) < count:
        port = secrets.choice(_PORTS)
        if is_free(port):
            found.add(port)
    return tuple(found)
