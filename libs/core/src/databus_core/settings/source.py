"""The section `source`: the database, the login, and which tables are captured."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, SecretStr, model_validator

from databus_binlog import Login, Tls, TlsFailed
from databus_core.settings.values import Duration, HostPort, Section, TablePattern
from databus_core.table_filter import TableFilter

_SYSTEM_SCHEMAS = {"mysql", "information_schema", "performance_schema", "sys"}


def _require_distinct(hosts: Sequence[str]) -> Sequence[str]:
    if twice := [host for host in hosts if hosts.count(host) > 1]:
        raise ValueError(f"{twice[0]} is listed twice")
    return hosts


class SourceTls(Section):
    """How the connections to the database are encrypted. All files are PEM."""

    ca_file: Path | None = None
    """Certificates of the authorities that may have issued the server's certificate; by default the system's."""
    cert_file: Path | None = None
    """Client certificate, if the account requires one."""
    key_file: Path | None = None
    """Private key of the client certificate, unless it is in the same file."""
    verify: Literal["full", "ca", "none"] = "full"
    """What is verified: `full` the certificate and the host's name, `ca` only the certificate, `none` nothing."""

    @model_validator(mode="after")
    def _check_files(self) -> Self:
        if self.key_file and not self.cert_file:
            raise ValueError("key_file needs a cert_file")
        try:
            self.client.context()
        except TlsFailed as error:
            raise ValueError(str(error)) from error
        return self

    @property
    def client(self) -> Tls:
        """The same settings for the database's client."""
        return Tls(ca=self.ca_file, certificate=self.cert_file, key=self.key_file, verify=self.verify)


class Source(Section):
    """The database and the tables that are captured."""

    hosts: Annotated[list[HostPort], Field(min_length=1), AfterValidator(_require_distinct)] = ["127.0.0.1:3306"]
    """The database: one server, or several with the same data, of which the reader uses one at a time."""
    user: str = "databus"
    """User name of the account at the database."""
    password: SecretStr = SecretStr("")
    """Password of the account."""
    password_file: Path | None = None
    """File with the password, used instead of `password`."""
    tls: SourceTls | None = None
    """If set, even to just `{}`, the connections are encrypted; every service must be able to read the files."""
    include: Annotated[list[TablePattern], Field(min_length=1)] = ["*.*"]
    """Tables to capture, as `schema.table` patterns with `*` and `?`; system schemas are never captured."""
    exclude: list[TablePattern] = []
    """Tables not to capture although `include` matches them."""
    connect_timeout: Duration = 10.0
    """How long a connection to the database may take to open."""

    @model_validator(mode="after")
    def _read_password(self) -> Self:
        self.load_secret("password")
        return self

    def login(self, host: str) -> Login:
        """Make the login for one of the hosts."""
        name, _, port = host.rpartition(":")
        return Login(
            host=name.strip("[]"),
            port=int(port),
            user=self.user,
            password=self.password.get_secret_value(),
            connect_timeout=self.connect_timeout,
            tls=self.tls.client if self.tls else None,
        )

    @cached_property
    def _filter(self) -> TableFilter:
        return TableFilter(self.include, self.exclude)

    def captures(self, schema: str, table: str) -> bool:
        """Return whether the changes of a table are captured."""
        return schema.lower() not in _SYSTEM_SCHEMAS and self._filter.matches(schema, table)

    def captures_some(self, schema: str) -> bool:
        """Return whether some tables of a schema may be captured."""
        return bool(schema) and schema.lower() not in _SYSTEM_SCHEMAS and self._filter.may_match_in(schema)

    def mentions_some(self, text: str) -> bool:
        """Return whether a text may contain the name of a schema with captured tables."""
        return self._filter.may_be_named_in(text)
