"""Logging in, encrypted or not; and asyncmy's errors, turned into ours.

asyncmy knows mysql_native_password, caching_sha2_password and sha256_password (without TLS they hide the password by
the server's public key) and MariaDB's ed25519.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import asyncmy
import msgspec
from asyncmy.errors import Error as DriverError
from asyncmy.errors import OperationalError

from databus_binlog.errors import AccessDenied, BinlogError, ServerUnavailable, TlsFailed, from_server

# what the driver itself raises
_HUNG_UP = 2013  # CR_SERVER_LOST
_NO_SUCH_METHOD = 2059  # CR_AUTH_PLUGIN_CANNOT_LOAD

_METHODS = "caching_sha2_password or ed25519"
_BROKEN = ("dialog", "mysql_old_password")  # methods in which the driver stumbles
_IN_CLEAR = "mysql_clear_password"


class Tls(msgspec.Struct, frozen=True, kw_only=True):
    """How a connection is encrypted and what the server must prove. All files are PEM."""

    ca: Path | None = None  #: whom to trust; None: whom the system trusts
    certificate: Path | None = None  #: of this client, if the account asks for one
    key: Path | None = None  #: of that certificate, unless it is in the same file; not encrypted
    #: full: the certificate is of a trusted issuer and for this host; ca: only the issuer counts; none: neither
    verify: Literal["full", "ca", "none"] = "full"

    def context(self) -> ssl.SSLContext:
        """Read the files. Raises TlsFailed."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = self.verify == "full"
        if self.verify == "none":
            context.verify_mode = ssl.CERT_NONE
        try:
            if self.ca:
                context.load_verify_locations(self.ca)
            else:
                context.load_default_certs()
        except OSError as error:
            raise _unusable(error, "certificates", self.ca) from error
        try:
            if self.certificate:
                context.load_cert_chain(self.certificate, self.key, password="")  # OpenSSL would ask on the terminal
        except OSError as error:
            raise _unusable(error, "certificate with its unencrypted key", self.certificate, self.key) from error
        return context


@dataclass(frozen=True, kw_only=True)
class Login:
    """Where and how to log in."""

    host: str
    port: int = 3306
    user: str
    password: str = field(default="", repr=False)
    connect_timeout: float = 10.0  #: seconds
    query_timeout: float = 60.0  #: seconds until the answer to a question must be there
    tls: Tls | None = None


async def log_in(login: Login, **options: Any) -> Any:
    """Return asyncmy's connection, logged in; `options` are asyncmy's."""
    context = login.tls.context() if login.tls else None
    try:
        async with asyncio.timeout(login.connect_timeout):
            return await asyncmy.connect(
                host=login.host,
                port=login.port,
                user=login.user,
                password=login.password.encode(),  # the driver would take Latin-1
                connect_timeout=login.connect_timeout,
                autocommit=True,
                ssl=context,
                auth_plugin_map=dict.fromkeys(_BROKEN if context else (*_BROKEN, _IN_CLEAR), _Untried),
                **options,
            )
    except TimeoutError as error:
        text = f"no answer from {login.host}:{login.port} within {login.connect_timeout:g} s"
        raise ServerUnavailable(text) from error
    except (DriverError, OSError) as error:
        raise _refused(error, login) from error


class _Untried:
    """Stands in for a method of authentication that the driver is not to try."""

    def __init__(self, connection: object) -> None: ...

    def authenticate(self, packet: object) -> None:
        raise OperationalError(_NO_SUCH_METHOD, "")


def translated(error: Exception, user: str, grant: str = "REPLICATION SLAVE", code: int | None = None) -> BinlogError:
    """Turn the driver's error into ours; `code` replaces the server's."""
    number, text = _told(error)
    if not number:
        return ServerUnavailable(f"connection failed: {text}")
    return from_server(code or number, text, user=user, grant=grant)


def _refused(error: Exception, login: Login) -> BinlogError:
    """Say why a login failed."""
    number, text = _told(error)
    host, tls = login.host, login.tls
    cause = error.__cause__
    if isinstance(cause, ssl.SSLCertVerificationError):
        return TlsFailed(f"the certificate of {host} is not trusted: {cause.verify_message} (check the TLS options)")
    if isinstance(cause, ssl.SSLError):
        return TlsFailed(f"{host} offers no TLS that can be used here: {cause.reason or cause} (check the TLS options)")
    if number == _HUNG_UP and tls and tls.certificate:
        return ServerUnavailable(f"{host} hung up after the TLS handshake; does it trust {tls.certificate}? ({text})")
    if number == _NO_SUCH_METHOD:
        advice = f"is unknown or logs in by a method that is not supported; use {_METHODS}"
        return AccessDenied(f"user {login.user!r} {advice}")
    return translated(error, login.user)


def _unusable(error: OSError, expected: str, *files: Path | None) -> TlsFailed:
    names = ", ".join(str(file) for file in files if file)
    return TlsFailed(f"{names}: {f'no PEM {expected}' if isinstance(error, ssl.SSLError) else error.strerror}")


def _told(error: Exception) -> tuple[int, str]:
    """Take an error of the driver apart; 0 where it gives no number."""
    number, text = error.args[0] if error.args else 0, str(error.args[1] if len(error.args) > 1 else error)
    return (number, text) if isinstance(error, DriverError) and isinstance(number, int) else (0, text)
