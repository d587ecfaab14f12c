"""Find out what kind of server answers at an address, to explain why a client of another kind failed there."""

import asyncio
import re
import struct

#: timeout for one of the two connections
_SECONDS = 1
#: MySQL and SSH greet a client; HTTP and Redis answer this request (Redis takes its first line for a command)
_REQUEST = b"GET / HTTP/1.0\r\n\r\n"
#: how ApiVersions and its answer are correlated; Kafka closes the connection after `_REQUEST`
_CORRELATION = b"DBUS"
#: Kafka's ApiVersions, version 0: size i32, request i16, version i16, correlation id i32, no client id
_API_VERSIONS = struct.pack(">ihh4sh", 10, 18, 0, _CORRELATION, -1)

#: beginning of an answer → kind of server
_ANSWERS = {
    re.compile(rb".{3}\0[\n\xff]", re.DOTALL): "MySQL or MariaDB",  # a packet: protocol version 10, or an error
    re.compile(rb"[-+][A-Z]"): "Redis",
    re.compile(rb".{4}" + _CORRELATION, re.DOTALL): "Kafka",
    re.compile(rb"HTTP/"): "an HTTP server",
    re.compile(rb"SSH-"): "an SSH server",
}


async def wrong_server(host: str, port: int, expected: str) -> str:
    """Return the kind of server that answers, if it is known and not the expected one; otherwise ""."""
    for request in (_REQUEST, _API_VERSIONS):
        answer = await _answer(host, port, request)
        for beginning, kind in _ANSWERS.items():
            if beginning.match(answer):
                return "" if kind == expected else kind
    return ""


async def _answer(host: str, port: int, request: bytes) -> bytes:
    try:
        async with asyncio.timeout(_SECONDS):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(request)
                return await reader.read(64)
            finally:
                writer.close()
    except OSError:  # also a TimeoutError
        return b""
