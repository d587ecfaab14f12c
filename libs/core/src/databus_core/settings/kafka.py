"""The section `kafka`: where the changes are published, and how clients log in and encrypt."""

from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, model_validator

from databus_core.settings.tls import ClientTls
from databus_core.settings.values import HostPort, HttpUrl, Section


def _require_no_login(url: str) -> str:
    """Refuse a login in a URL, because errors and logs quote the URL."""
    if "@" in urlsplit(url).netloc:
        raise ValueError("the URL must not contain a login: set client_id and client_secret")
    return url


class KafkaOAuth(Section):
    """Where tokens come from: OAuth's client credentials grant (RFC 6749, 4.4)."""

    token_url: Annotated[HttpUrl, AfterValidator(_require_no_login)]
    """URL of the token endpoint; a new token is fetched before the old one expires."""
    client_id: str
    """Id of this client at the token service."""
    client_secret: SecretStr = SecretStr("")
    """Secret of this client."""
    client_secret_file: Path | None = None
    """File with the secret, used instead of `client_secret`."""
    scope: str = ""
    """Scope to request, if the token service needs one."""

    @model_validator(mode="after")
    def _read_client_secret(self) -> Self:
        self.load_secret("client_secret")
        return self


class KafkaSasl(Section):
    """The login to Kafka."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
    """SASL mechanism."""
    username: str = ""
    """User name, for all mechanisms but `OAUTHBEARER`."""
    password: SecretStr = SecretStr("")
    """Password of the user."""
    password_file: Path | None = None
    """File with the password, used instead of `password`."""
    oauth: KafkaOAuth | None = None
    """Where tokens come from, for `OAUTHBEARER`."""

    @model_validator(mode="after")
    def _check_credentials(self) -> Self:
        self.load_secret("password")
        password = self.password.get_secret_value()
        if self.mechanism == "OAUTHBEARER":
            if self.oauth is None:
                raise ValueError("mechanism OAUTHBEARER needs oauth, with token_url and client_id")
            if self.username or password:
                raise ValueError(
                    "mechanism OAUTHBEARER takes no username or password: set client_id and client_secret in oauth"
                )
        else:
            if self.oauth is not None:
                raise ValueError(f"oauth is for mechanism OAUTHBEARER, not for {self.mechanism}")
            if not (self.username and password):
                raise ValueError(f"mechanism {self.mechanism} needs username, and password or password_file")
        return self


class Kafka(Section):
    """The connection to Kafka."""

    bootstrap_servers: Annotated[list[HostPort], Field(min_length=1)] = ["127.0.0.1:9092"]
    """Brokers to connect to first; they name the others."""
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """Whether connections are encrypted (`SSL`) and whether clients log in (`SASL`)."""
    sasl: KafkaSasl | None = None
    """The login, with `SASL_SSL` and `SASL_PLAINTEXT`."""
    tls: ClientTls | None = None
    """Certificates for `SSL` and `SASL_SSL`, if the system's do not suffice; all services must be able to read them."""

    @model_validator(mode="after")
    def _check_protocol(self) -> Self:
        protocol = self.security_protocol
        if self.sasl is None and protocol.startswith("SASL"):
            raise ValueError(f"security_protocol {protocol} needs sasl")
        if self.sasl is not None and not protocol.startswith("SASL"):
            raise ValueError(f"sasl needs security_protocol SASL_SSL or SASL_PLAINTEXT, it is {protocol}")
        if self.tls is not None and not self.encrypted:
            raise ValueError(f"tls needs security_protocol SSL or SASL_SSL, it is {protocol}")
        return self

    @property
    def encrypted(self) -> bool:
        """Whether connections use TLS."""
        return self.security_protocol.endswith("SSL")
