"""TLS of the clients of Kafka and Redis; the sections `kafka.tls` and `redis.tls`."""

import ssl
from pathlib import Path
from typing import Self

from pydantic import SecretStr, model_validator

from databus_binlog import Tls, TlsFailed
from databus_core.settings.values import Section


class ClientTls(Section):
    """The certificates of an encrypted connection. All files are PEM."""

    ca_file: Path | None = None
    """Certificates of the authorities that may have issued the server's certificate; by default the system's."""
    cert_file: Path | None = None
    """Client certificate (mTLS), if the server requires one."""
    key_file: Path | None = None
    """Private key of the client certificate, unless it is in the same file."""
    key_password: SecretStr = SecretStr("")
    """Password of an encrypted private key."""
    key_password_file: Path | None = None
    """File with the password of the key, used instead of `key_password`."""
    verify_hostname: bool = True
    """Whether the server's certificate must be for the host name that is connected to."""

    @model_validator(mode="after")
    def _check_files(self) -> Self:
        self.load_secret("key_password")
        if self.key_file and not self.cert_file:
            raise ValueError("key_file needs a cert_file")
        try:
            self.context()
        except TlsFailed as error:
            raise ValueError(str(error)) from error
        return self

    def context(self) -> ssl.SSLContext:
        """Read the files and return the TLS context for a connection. Raises TlsFailed."""
        return Tls(
            ca=self.ca_file,
            certificate=self.cert_file,
            key=self.key_file,
            password=self.key_password.get_secret_value(),
            verify="full" if self.verify_hostname else "ca",
        ).context()
