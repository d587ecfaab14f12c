"""T28: a server may renew the keys of a TLS connection at any time, and reading continues."""

import _ssl
import asyncio
import ctypes
import socket
import ssl
from contextlib import asynccontextmanager

import pytest

from common.binlog_rows import ids
from devstack import Server

#: the packet in which a client asks for TLS, with its header
_SSL_REQUEST = 36
_KEY_UPDATE = 24  # of the handshake's messages: RFC 8446, section 4
_UPDATE_REQUESTED = 1  # the other side has to renew its keys, too

_openssl = ctypes.CDLL(_ssl.__file__)
_openssl.SSL_key_update.argtypes = [ctypes.c_void_p, ctypes.c_int]


@pytest.fixture
def source(own: Server) -> Server:
    return own


class Renewing:
    """Forwards a client's connection to a server, and renews the keys before each piece of the answer."""

    def __init__(self, server: Server, certificate) -> None:
        self._server = server
        self._behind = ssl.create_default_context()
        self._behind.check_hostname, self._behind.verify_mode = False, ssl.CERT_NONE
        self._front = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._front.minimum_version = ssl.TLSVersion.TLSv1_3
        self._front.load_cert_chain(certificate)
        self._front._msg_callback = self._seen
        self.asked = self.answered = 0

    @asynccontextmanager
    async def listening(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setblocking(False)
            async with asyncio.timeout(60), asyncio.TaskGroup() as group:  # which ends with the first failure
                passing = group.create_task(self._pass_on(listener))
                yield listener.getsockname()[1]
                passing.cancel()

    async def _pass_on(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        client, _ = await loop.sock_accept(listener)
        from_server, to_server = await asyncio.open_connection(self._server.host, self._server.port)
        length = await from_server.readexactly(4)
        greeting = await from_server.readexactly(int.from_bytes(length[:3], "little"))
        await loop.sock_sendall(client, length + greeting)
        to_server.write(await loop.sock_recv(client, _SSL_REQUEST))  # exactly this: the following bytes belong to TLS
        await to_server.start_tls(self._behind)
        from_client = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(from_client)
        transport, _ = await loop.connect_accepted_socket(lambda: protocol, client, ssl=self._front)
        to_client = asyncio.StreamWriter(transport, protocol, from_client, loop)
        keys = transport.get_extra_info("ssl_object")._sslobj
        pointer = ctypes.c_void_p.from_address(id(keys) + object.__basicsize__ + ctypes.sizeof(ctypes.c_void_p))

        async def forward() -> None:
            while piece := await from_client.read(1 << 16):
                to_server.write(piece)
                await to_server.drain()

        async def back() -> None:
            while piece := await from_server.read(1 << 16):
                assert _openssl.SSL_key_update(pointer, _UPDATE_REQUESTED) == 1
                to_client.write(piece)
                await to_client.drain()

        try:
            await asyncio.gather(forward(), back())
        finally:
            to_client.close()
            to_server.close()

    def _seen(self, _, direction, version, content, message, data) -> None:
        if message == _KEY_UPDATE:
            self.asked += direction == "write"
            self.answered += direction == "read"


async def test_t28_keys_renewed_in_the_middle_of_the_log_lose_nothing(
    own, login, schema, execute, queries, trusted, authority
):
    await execute("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, filling VARBINARY(1000))")
    start = await queries.current_position()
    for _ in range(4):
        await execute("INSERT INTO t (filling) VALUES " + ",".join(["(REPEAT('x', 1000))"] * 2000))
    renewing = Renewing(own, authority.issue("front"))
    async with renewing.listening() as port, login(port=port, tls=trusted) as session:
        stream = await session.dump(start, server_id=4716, follow=False, wanted=lambda name, _: name == schema)
        read = ids([event async for events in stream for event in events])
    assert len(read) == len(set(read)) == 8000
    assert renewing.asked > 20
    assert renewing.answered > 20
