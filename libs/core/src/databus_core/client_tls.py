"""TLS of the clients of Kafka and Redis, and why a handshake failed.

The parameter `section` is the section of a client's settings: `kafka` or `redis`.
"""

import asyncio
import re
import ssl

from databus_binlog import TlsFailed
from databus_core.errors import InvalidSettings
from databus_core.settings.tls import ClientTls

#: OpenSSL's error codes for a certificate that is valid, but issued for another host name or IP address
_OTHER_HOST = (62, 64)
#: TLS alerts of a server that refuses this client's certificate, or requires one and got none
_CLIENT_ALERT = re.compile("ALERT_(.*CERTIFICATE.*|UNKNOWN_CA|ACCESS_DENIED)")
#: how long to wait for the server's alert
_ALERT_SECONDS = 2


def tls_context(tls: ClientTls | None, section: str) -> ssl.SSLContext:
    """Make the context, reading the certificate files; without settings, it trusts the system's authorities.

    Raises InvalidSettings.
    """
    try:
        return (tls or ClientTls()).context()
    except TlsFailed as error:
        raise InvalidSettings(f"{section}.tls: {error}") from error


async def tls_alert(host: str, port: int, context: ssl.SSLContext) -> ssl.SSLError | None:
    """Connect, send nothing, and return the TLS error, such as the server's alert; None if there is none.

    With TLS 1.3 a server refuses a client's certificate after the handshake. A client that has sent a request by then
    may see only that the connection was closed.
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
    except OSError:  # also a TimeoutError: a server that accepts the client waits for its request
        pass
    return None


def tls_refusal(server: str, section: str, error: BaseException | None) -> InvalidSettings | None:
    """Return an error that names the setting to change after a failed handshake; None if no certificate was refused."""
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = error.verify_message.rstrip(".")
        advice = f"check {section}.tls.ca_file"
        if error.verify_code in _OTHER_HOST:
            advice = f"connect to a name that the certificate contains, or set {section}.tls.verify_hostname to false"
        return InvalidSettings(f"{server} has a certificate that cannot be trusted: {reason} ({advice})")
    if isinstance(error, ssl.SSLError) and (alert := _CLIENT_ALERT.search(error.reason or "")):
        reason = alert[1].replace("_", " ").lower()
        advice = f"check {section}.tls.cert_file and {section}.tls.key_file"
        return InvalidSettings(f"{server} does not accept this client's certificate: {reason} ({advice})")
    return None
