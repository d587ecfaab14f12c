"""Free ports on 127.0.0.1."""

import secrets
import socket

HOST = "127.0.0.1"
#: Below Linux's range for outgoing connections, so that a port stays free while its server restarts.
_PORTS = range(20000, 32000)


def is_free(port: int) -> bool:
    """Return whether no process listens on the port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def free_ports(count: int) -> tuple[int, ...]:
    """Return free ports, chosen at random so that two stacks that start at once get different ones."""
    found: set[int] = set()
    while len(found) < count:
        port = secrets.choice(_PORTS)
        if is_free(port):
            found.add(port)
    return tuple(found)
