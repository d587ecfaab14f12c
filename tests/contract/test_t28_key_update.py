"""T28: a server may renew the keys of a TLS connection at any time. The client must answer, and reading continues."""

import _ssl
import asyncio
import ctypes
import socket
import ssl
from contextlib import asynccontextmanager

import pytest

from common.binlog_rows import ids
from devstack import Server

#: size of the packet, with its header, in which a client asks for TLS
_SSL_REQUEST = 36
#: type of the handshake message that renews a sender's keys: RFC 8446, section 4
_KEY_UPDATE = 24
#: value in this message that asks the other side to renew its keys, too
_UPDATE_REQUESTED = 1

_openssl = ctypes.CDLL(_ssl.__file__)
_openssl.SSL_key_update.argtypes = [ctypes.c_void_p, ctypes.c_int]


@pytest.fixture
def source(own: Server) -> Server:
    return own


class RenewingProxy:
    """Forwards a client's connection to a server.

    Before each piece for the client, the proxy renews its own keys, and asks the client to renew the client's.
    """

    def __init__(self, server: Server, certificate) -> None:
        self._server = server
        self._to_server = ssl.create_default_context()
        self._to_server.check_hostname, self._to_server.verify_mode = False, ssl.CERT_NONE
        self._to_client = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._to_client.minimum_version = ssl.TLSVersion.TLSv1_3
        self._to_client.load_cert_chain(certificate)
        self._to_client._msg_callback = self._count
        self.requested = self.answered = 0  # renewals by this proxy, and by the client

    @asynccontextmanager
    async def listening(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setblocking(False)
            async with asyncio.timeout(60), asyncio.TaskGroup() as group:  # a failure ends the test
                forwarding = group.create_task(self._forward(listener))
                yield listener.getsockname()[1]
                forwarding.cancel()

    async def _forward(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        client, _ = await loop.sock_accept(listener)
        from_server, to_server = await asyncio.open_connection(self._server.host, self._server.port)
        length = await from_server.readexactly(4)
        greeting = await from_server.readexactly(int.from_bytes(length[:3], "little"))
        await loop.sock_sendall(client, length + greeting)
        to_server.write(await loop.sock_recv(client, _SSL_REQUEST))  # no more: the following bytes belong to TLS
        await to_server.start_tls(self._to_server)
        from_client = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(from_client)
        transport, _ = await loop.connect_accepted_socket(lambda: protocol, client, ssl=self._to_client)
        to_client = asyncio.StreamWriter(transport, protocol, from_client, loop)
        # CPython's object for a TLS connection has a header, a pointer, and then the pointer to OpenSSL's connection.
        connection = transport.get_extra_info("ssl_object")._sslobj
        openssl_connection = ctypes.c_void_p.from_address(
            id(connection) + object.__basicsize__ + ctypes.sizeof(ctypes.c_void_p)
        )

        async def requests() -> None:
            while piece := await from_client.read(1 << 16):
                to_server.write(piece)
                await to_server.drain()

        async def answers() -> None:
            while piece := await from_server.read(1 << 16):
                assert _openssl.SSL_key_update(openssl_connection, _UPDATE_REQUESTED) == 1
                to_client.write(piece)
                await to_client.drain()

        try:
            await asyncio.gather(requests(), answers())
        finally:
            to_client.close()
            to_server.close()

    def _count(self, _, direction, version, content, message, data) -> None:
        if message == _KEY_UPDATE:
            self.requested += direction == "write"
            self.answered += direction == "read"


async def test_t28_no_row_is_lost_when_keys_are_renewed_while_the_log_is_read(
    own, login, schema, execute, queries, trusted, authority
):
    await execute("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, filling VARBINARY(1000))")
    start = await queries.current_position()
    for _ in range(4):
        await execute("INSERT INTO t (filling) VALUES " + ",".join(["(REPEAT('x', 1000))"] * 2000))
    proxy = RenewingProxy(own, authority.issue("front"))
    async with proxy.listening() as port, login(port=port, tls=trusted) as session:
        stream = await session.dump(start, server_id=4716, follow=False, wanted=lambda name, _: name == schema)
        read = ids([event async for events in stream for event in events])
    assert len(read) == len(set(read)) == 8000
    assert proxy.requested > 20
    assert proxy.answered > 20
