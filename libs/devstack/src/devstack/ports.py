"""Free ports on 127.0.0.1."""

import fcntl
import os
import random
import socket

from devstack import cache
from devstack.server import DevstackError

HOST = "127.0.0.1"
#: Below Linux's range for outgoing connections, so that a port stays free while its server restarts.
_PORTS = range(20000, 32000)
#: number of ports that a process reserves at a time
_BLOCK = 100
#: ports of this process that it has not given away
_reserved: list[int] = []


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
    """Return free ports. Until this process ends, no other one gets them, also while nobody listens on them."""
    found: list[int] = []
    while len(found) < count:
        if not _reserved:
            _reserved.extend(_reserve_block())
        if is_free(port := _reserved.pop()):
            found.append(port)
    return tuple(found)


def _reserve_block() -> range:
    """Lock a block of ports as long as this process lives. Raises DevstackError if others have locked all."""
    folder = cache.root() / "ports"
    folder.mkdir(parents=True, exist_ok=True)
    blocks = [_PORTS[begin : begin + _BLOCK] for begin in range(0, len(_PORTS), _BLOCK)]
    for block in random.SystemRandom().sample(blocks, len(blocks)):
        lock = os.open(folder / str(block[0]), os.O_CREAT | os.O_RDWR)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
        else:
            return block
    raise DevstackError(f"other processes have reserved all ports from {_PORTS[0]} to {_PORTS[-1]}: end some of them")
