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

    ca: Path | None = None  #: file with the trusted CA certificates; None: the CA certificates of the system
    certificate: Path | None = None  #: file with the client's certificate, if the account requires one
    key: Path | None = None  #: file with the client's private key; None: the key is in the certificate's file
    password: str = ""  #: password of the client's private key; "": the key is not encrypted
    #: how the server's certificate is verified. full: a trusted CA has signed it, and it names the host of the
    #: connection; ca: a trusted CA has signed it; none: it is not verified
    verify: Literal["full", "ca", "none"] = "full"

    def context(self) -> ssl.SSLContext:
        """Build the SSL context. Raises TlsFailed if a file cannot be loaded, or if a key has no certificate."""
        if self.key and not self.certificate:
            raise TlsFailed(f"{self.key}: a client key needs a client certificate")
        _require_readable(self.ca, self.certificate, self.key)
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
            raise TlsFailed(f"{self.ca}: no PEM certificates") from error
        try:
            if self.certificate:
                # Always pass a password, even an empty one: with None, OpenSSL prompts on the terminal.
                context.load_cert_chain(self.certificate, self.key, self.password)
        except OSError as error:
            files = f"{self.certificate}, {self.key}" if self.key else self.certificate
            cause = "the key's password is wrong" if self.password else "the key is encrypted and no password is set"
            raise TlsFailed(f"{files}: no PEM certificate with its private key, or {cause}") from error
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
    connect_timeout: float = 10.0  #: seconds within which the login must succeed
    query_timeout: float = 60.0  #: seconds within which a query must be answered
    tls: Tls | None = None


def _require_readable(*files: Path | None) -> None:
    """Raise TlsFailed with the name of a file that cannot be read; the errors of the SSL context do not name it."""
    for file in filter(None, files):
        try:
            file.open("rb").close()
        except OSError as error:
            raise TlsFailed(f"{file}: {error.strerror}") from error
