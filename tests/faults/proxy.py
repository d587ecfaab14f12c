"""A TCP proxy that simulates a bad network: silently cut, slow, or reset."""

import asyncio
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from enum import Enum

_CHUNK = 64 * 1024


class Network(Enum):
    """The state of the network behind a proxy."""

    #: data is forwarded
    GOOD = "good"
    #: data is dropped silently: connections that are open meanwhile never work again
    HALF_OPEN = "half-open"
    #: every piece is delayed
    SLOW = "slow"


class Proxy:
    """Forwards connections from one port of this host, `port`, to another, `target`."""

    def __init__(self, target: int, port: int = 0) -> None:
        self.target = target
        self.port = port
        self.network = Network.GOOD
        #: seconds by which each piece is delayed while the network is slow
        self.delay = 0.05
        #: the next connection is cut silently after this many pieces from the target; then `was_cut` is set
        self.cut_after: int | None = None
        self.was_cut = asyncio.Event()
        self._links: set[_Link] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen on `port`, or on a free port if it is 0."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening and reset open connections."""
        if self._server:
            self._server.close()
        self.reset()
        await asyncio.gather(*(link.ended for link in self._links), return_exceptions=True)

    @property
    def connections(self) -> int:
        """Number of open connections, including silent ones."""
        return len(self._links)

    def half_open(self) -> None:
        """Drop data on all connections from now on, and close none."""
        self.network = Network.HALF_OPEN
        for link in self._links:
            link.dead = True

    def slow(self, delay: float) -> None:
        """Delay every piece by this many seconds."""
        self.network, self.delay = Network.SLOW, delay

    def heal(self) -> None:
        """Forward new and working connections; those cut meanwhile stay silent, and open."""
        self.network = Network.GOOD

    def reset(self) -> None:
        """Reset all connections."""
        for link in self._links:
            link.reset()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = _Link(self, reader, writer)
        self._links.add(link)
        try:
            await link.run()
        finally:
            self._links.discard(link)


class _Link:
    """One connection: the client's half, and the target's."""

    def __init__(self, proxy: Proxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._proxy = proxy
        self._near = reader, writer
        self._writers = [writer]
        self.dead = proxy.network is Network.HALF_OPEN
        self._answers, proxy.cut_after = proxy.cut_after, None
        self.ended = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        """Forward both directions until both have ended."""
        try:
            reader, writer = self._near
            try:
                far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._proxy.target)
            except OSError:
                return
            self._writers.append(far_writer)
            await asyncio.gather(
                self._pass_on(reader, far_writer), self._pass_on(far_reader, writer, self._count_answer)
            )
        finally:
            self.reset()
            self.ended.set_result(None)

    def reset(self) -> None:
        """Reset both halves: the peers get a RST."""
        for writer in self._writers:
            with suppress(OSError):
                linger = struct.pack("ii", 1, 0)
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()

    def _count_answer(self) -> None:
        if self._answers is not None:
            self._answers -= 1
            if self._answers < 0:
                self.dead = True
                self._proxy.was_cut.set()

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, count: Callable[[], None] = lambda: None
    ) -> None:
        with suppress(OSError):
            while piece := await reader.read(_CHUNK):
                count()
                if self._proxy.network is Network.SLOW:
                    await asyncio.sleep(self._proxy.delay)
                if not self.dead:
                    writer.write(piece)
                    await writer.drain()
        if not self.dead:  # with a dead link, the other end must not notice that this one has ended
            writer.close()
