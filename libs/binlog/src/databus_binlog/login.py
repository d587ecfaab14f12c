"""Where and how to log in to a server."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from databus_binlog.errors import TlsFailed


class Tls(msgspec.Struct, frozen=True, kw_only=True):
    """How a connection is encrypted and how the server is verified. All files are PEM."""

    ca: Path | None = None  #: certificates of the trusted issuers; None: those that the system trusts
    certificate: Path | None = None  #: of this client, if the account requires one
    key: Path | None = None  #: of that certificate, unless it is in the same file
    password: str = ""  #: of the key, if it is encrypted
    #: full: the certificate has a trusted issuer and names this host; ca: it has a trusted issuer; none: no check
    verify: Literal["full", "ca", "none"] = "full"

    def context(self) -> ssl.SSLContext:
        """Load the files. Raises TlsFailed."""
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
                # Without a password OpenSSL would prompt for it on the terminal.
                context.load_cert_chain(self.certificate, self.key, self.password)
        except OSError as error:
            key = "its key, or the key's password is wrong" if self.password else "its unencrypted key"
            raise _unusable(error, f"certificate with {key}", self.certificate, self.key) from error
        return context

    def __repr__(self) -> str:
        return f"Tls(ca={self.ca}, certificate={self.certificate}, key={self.key}, verify={self.verify!r})"


@dataclass(frozen=True, kw_only=True)
class Login:
    """A server's address and an account on it."""

    host: str
    port: int = 3306
    user: str
    password: str = field(default="", repr=False)
    connect_timeout: float = 10.0  #: seconds
    query_timeout: float = 60.0  #: seconds within which a query must be answered
    tls: Tls | None = None


def _unusable(error: OSError, expected: str, *files: Path | None) -> TlsFailed:
    names = ", ".join(str(file) for file in files if file)
    return TlsFailed(f"{names}: {f'no PEM {expected}' if isinstance(error, ssl.SSLError) else error.strerror}")
