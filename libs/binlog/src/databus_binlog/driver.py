"""Logs in with asyncmy, translates its errors, and does what asyncmy has no public call for.

asyncmy supports mysql_native_password, MariaDB's ed25519, caching_sha2_password and sha256_password; over TLS also
mysql_clear_password. Without TLS, caching_sha2_password and sha256_password encrypt the password with the server's
public key.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any, TypeVar

import asyncmy
from asyncmy.errors import Error as DriverError
from asyncmy.errors import OperationalError

from databus_binlog.errors import AccessDenied, BinlogError, ServerUnavailable, TlsFailed, from_server
from databus_binlog.login import Login

# Codes of errors that the driver itself raises.
_SERVER_LOST = 2013  # CR_SERVER_LOST
_NO_SUCH_METHOD = 2059  # CR_AUTH_PLUGIN_CANNOT_LOAD

# Authentication methods.
_ADVISED = "caching_sha2_password or ed25519"
_BROKEN = ("dialog", "mysql_old_password")  # the driver crashes
_CLEAR_TEXT = "mysql_clear_password"  # the driver sends the password unencrypted

_Protocol = TypeVar("_Protocol", bound=asyncio.BufferedProtocol)


async def log_in(login: Login, **options: Any) -> Any:
    """Return a connection of asyncmy, logged in; `options` are asyncmy's. Raises BinlogError."""
    context = login.tls.context() if login.tls else None
    try:
        async with asyncio.timeout(login.connect_timeout):
            return await asyncmy.connect(
                host=login.host,
                port=login.port,
                user=login.user,
                password=login.password.encode(),  # the driver would encode it as Latin-1
                connect_timeout=login.connect_timeout,
                autocommit=True,
                ssl=context,
                auth_plugin_map=dict.fromkeys(_BROKEN if context else (*_BROKEN, _CLEAR_TEXT), _ForbiddenMethod),
                **options,
            )
    except TimeoutError as error:
        text = f"no answer from {login.host}:{login.port} within {login.connect_timeout:g} s"
        raise ServerUnavailable(text) from error
    except (DriverError, OSError) as error:
        raise _login_error(error, login) from error


class _ForbiddenMethod:
    """Replaces an authentication method that the driver must not try."""

    def __init__(self, connection: object) -> None: ...

    def authenticate(self, packet: object) -> None:
        raise OperationalError(_NO_SUCH_METHOD, "")


def send(connection: Any, payload: bytes) -> None:
    """Send a command that asyncmy has no call for. Raises DriverError."""
    connection._next_seq_id = 0
    connection.write_packet(payload)


def take_over(connection: Any, protocol: Callable[[asyncio.Transport], _Protocol]) -> _Protocol:
    """Let a protocol receive what the server sends from now on. asyncmy can't use the connection until `give_back`."""
    transport: asyncio.Transport = connection._transport
    receiver = protocol(transport)
    transport.set_protocol(receiver)
    if transport.is_closing():  # only asyncmy's protocol was notified
        receiver.connection_lost(None)
    return receiver


def give_back(connection: Any) -> None:
    """Let asyncmy use the connection again. The protocol that took it over must have read the whole answer."""
    connection._transport.set_protocol(connection._proto)


def translate(error: Exception, user: str, grant: str = "REPLICATION SLAVE", code: int | None = None) -> BinlogError:
    """Return our error for an error of the driver; `code` replaces the server's error code."""
    number, text = _number_and_text(error)
    if not number:
        return ServerUnavailable(f"connection failed: {text}")
    return from_server(code or number, text, user=user, grant=grant)


def _login_error(error: Exception, login: Login) -> BinlogError:
    """Return our error for a failed login."""
    number, text = _number_and_text(error)
    host, tls = login.host, login.tls
    cause = error.__cause__
    if isinstance(cause, ssl.SSLCertVerificationError):
        return TlsFailed(f"the certificate of {host} is not trusted: {cause.verify_message} (check the TLS options)")
    if isinstance(cause, ssl.SSLError):
        return TlsFailed(f"no TLS connection to {host} is possible: {cause.reason or cause} (check the TLS options)")
    if number == _SERVER_LOST and tls and tls.certificate:
        return ServerUnavailable(
            f"{host} closed the connection after the TLS handshake; check that it trusts the client certificate"
            f" {tls.certificate} ({text})"
        )
    if number == _NO_SUCH_METHOD:
        advice = f"is unknown or logs in by a method that is not supported; use {_ADVISED}"
        return AccessDenied(f"user {login.user!r} {advice}")
    return translate(error, login.user)


def _number_and_text(error: Exception) -> tuple[int, str]:
    """Return the number of a driver's error, 0 if it has none, and its text."""
    number, text = error.args[0] if error.args else 0, str(error.args[1] if len(error.args) > 1 else error)
    return (number, text) if isinstance(error, DriverError) and isinstance(number, int) else (0, text)
