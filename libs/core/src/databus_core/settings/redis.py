"""The section `redis`: how services connect to Redis."""

from pathlib import Path
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, model_validator

from databus_core.settings.tls import ClientTls
from databus_core.settings.values import Section


def _require_redis_url(text: str) -> str:
    """Validate a URL of Redis. The error must not quote the URL, which may contain a password."""
    try:
        parts = urlsplit(text)
        valid = parts.scheme == "unix" or (parts.scheme in {"redis", "rediss"} and parts.port != 0)
    except ValueError:  # for instance, a port that is no number
        valid = False
    if not valid:
        raise ValueError("not a URL such as redis://host:6379/0 (special characters of a password are written as %XX)")
    return text


class RedisSection(Section):
    """The connection to Redis."""

    # A URL may contain a password, so it is not shown.
    url: Annotated[str, Field(repr=False), AfterValidator(_require_redis_url)] = "redis://127.0.0.1:6379/0"
    """Address of Redis 7 or newer: `redis://` with user and password if needed, `rediss://` (TLS) or `unix://PATH`."""
    username: str = ""
    """User name of an ACL; by default Redis' user `default`."""
    password: SecretStr = SecretStr("")
    """Password of the user."""
    password_file: Path | None = None
    """File with the password, used instead of `password`."""
    tls: ClientTls | None = None
    """Certificates for `rediss://`, if the system's do not suffice; all services must be able to read them."""

    @model_validator(mode="after")
    def _check_login(self) -> Self:
        self.load_secret("password")
        parts = urlsplit(self.url)
        if self.tls is not None and parts.scheme != "rediss":
            raise ValueError(f"tls needs a url that begins with rediss://, not with {parts.scheme}://")
        if parts.password and self.password.get_secret_value():
            raise ValueError("url has a password, and password or password_file is set, too: remove one of them")
        if parts.username and self.username:
            raise ValueError("url has a user name, and username is set, too: remove one of them")
        return self
