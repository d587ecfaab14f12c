"""TLS of the clients of Kafka and Redis, and why a handshake failed.

`section` is the section of their settings: `kafka` or `redis`.
"""

import asyncio
import re
import ssl

from databus.errors import InvalidSettings
from databus.settings.tls import ClientTls
from databus_binlog import TlsFailed

#: OpenSSL's error codes for a certificate that is valid, but issued for another host name or IP address
_OTHER_HOST = (62, 64)
#: alerts that a server sends when it refuses this client's certificate, or got none
_CLIENT_ALERT = re.compile("ALERT_(.*CERTIFICATE.*|UNKNOWN_CA|ACCESS_DENIED)")
_ALERT_SECONDS = 2


def tls_context(tls: ClientTls | None, section: str) -> ssl.SSLContext:
    """Read the files; without settings, trust the system's authorities. Raises InvalidSettings."""
    try:
        return (tls or ClientTls()).context()
    except TlsFailed as error:
        raise InvalidSettings(f"{section}.tls: {error}") from error


async def tls_alert(host: str, port: int, context: ssl.SSLContext) -> ssl.SSLError | None:
    """Connect, send nothing and return the error that the server answers with, or None.

    With TLS 1.3 a server refuses a client's certificate after the handshake. A client that has sent a request by then
    may see a closed connection only.
    """
    try:
        async with asyncio.timeout(_ALERT_SECONDS):
            reader, writer = await asyncio.open_connection(host, port, ssl=context)
            try:
                await reader.read(1)
            finally:
                writer.close()
    except ssl.SSLError as error:
        return error
    except OSError:  # TimeoutError is one: a server that accepts the client waits for its request
        pass
    return None


def tls_refusal(server: str, section: str, error: BaseException | None) -> InvalidSettings | None:
    """Say which setting to change after a failed handshake; None for an error that may pass by itself."""
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = error.verify_message.rstrip(".")
        advice = f"check {section}.tls.ca_file"
        if error.verify_code in _OTHER_HOST:
            advice = f"connect to a name that is in it, or set {section}.tls.verify_hostname to false"
        return InvalidSettings(f"{server} has a certificate that cannot be trusted: {reason} ({advice})")
    if isinstance(error, ssl.SSLError) and (alert := _CLIENT_ALERT.search(error.reason or "")):
        reason = alert[1].replace("_", " ").lower()
        advice = f"check {section}.tls.cert_file and {section}.tls.key_file"
        return InvalidSettings(f"{server} does not accept this client's certificate: {reason} ({advice})")
    return None
