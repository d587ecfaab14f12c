"""The configuration: one YAML file for all services, each reads its part.

Any value can be overridden by an environment variable `DATABUS__SECTION__KEY`, and `password` can be given as
`password_file`. It is validated as a whole, all errors at once, each with the key's path; an unknown key is an error.
"""

import argparse
import os
import re
import zlib
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from databus.errors import InvalidSettings
from databus.rules import PartitionBy, Rule, TablePattern, TopicTemplate
from databus_binlog import Engine, Flavor, GtidSet, InvalidPosition, Login, Tls, TlsFailed

_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


def _size(value: object) -> object:
    """Read `256MiB` as bytes."""
    if isinstance(value, str) and (match := re.fullmatch(r"(\d+)\s*(B|KiB|MiB|GiB)", value)):
        return int(match[1]) * _UNITS[match[2]]
    return value


def _duration(value: object) -> object:
    """Read `1.5s`, `90m`, `6h` as seconds."""
    if isinstance(value, str) and (match := re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)", value)):
        return float(match[1]) * _SECONDS[match[2]]
    return value


def _topic_setting(value: object) -> object:
    """Write a YAML scalar as Kafka does."""
    return str(value).lower() if isinstance(value, bool | int | float) else value


def _port_in_range(address: str) -> str:
    if int(address.rpartition(":")[2]) >= 2**16:
        raise ValueError("a port ends at 65535")
    return address


def _distinct(hosts: list[str]) -> list[str]:
    if twice := [host for host in hosts if hosts.count(host) > 1]:
        raise ValueError(f"{twice[0]} is there twice")
    return hosts


def _start(value: str) -> str:
    """Take the words and forms that databus_reader.source.start understands."""
    if value in {"latest", "earliest"}:
        return value
    kind, _, rest = value.partition(":")
    if kind == "gtid" and rest.strip():
        for flavor in get_args(Flavor):
            with suppress(InvalidPosition):
                GtidSet.parse(flavor, rest)
                return value
        raise ValueError(f"{rest[:200]!r} is neither MySQL's nor MariaDB's text of a GTID set")
    if kind == "dump" and rest:
        return value
    file, _, offset = value.rpartition(":")
    if re.search(r"\.\d+$", file) and offset.isdecimal() and int(offset) >= 4:
        return value
    raise ValueError(
        "it is latest, earliest, FILE:OFFSET (mysql-bin.000007:4), gtid:SET or dump:ID, and not " + repr(value[:200])
    )


def _secret_of(key: str, path: Path) -> SecretStr:
    try:
        return SecretStr(path.read_text().rstrip("\n"))
    except OSError as error:
        raise ValueError(f"{key} cannot be read: {error.strerror}: {error.filename}") from error


Size = Annotated[int, BeforeValidator(_size), Field(gt=0)]
Duration = Annotated[float, BeforeValidator(_duration), Field(gt=0)]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$")]
HostPort = Annotated[
    str, StringConstraints(pattern=r"^(\[[0-9a-fA-F:]+\]|[^\s:\[\]]+):\d{1,5}$"), AfterValidator(_port_in_range)
]
TopicSetting = Annotated[str, BeforeValidator(_topic_setting)]
HttpUrl = Annotated[str, StringConstraints(pattern=r"^https?://[^\s/]+(/\S*)?$")]
FileUrl = Annotated[str, StringConstraints(pattern=r"^file:///")]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SourceTls(_Section):
    """How the connections to the database are encrypted. All files are PEM."""

    #: whom to trust; by default whom the system trusts
    ca_file: Path | None = None
    #: certificate of this client, and its key unless it is in the same file
    cert_file: Path | None = None
    key_file: Path | None = None
    #: `ca` leaves the host's name out, `none` everything
    verify: Literal["full", "ca", "none"] = "full"

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
        """What the client library takes."""
        return Tls(ca=self.ca_file, certificate=self.cert_file, key=self.key_file, verify=self.verify)


class Source(_Section):
    """The database and what of it is captured."""

    #: servers with the same data; the reader is at one of them, first at the first
    hosts: Annotated[list[HostPort], Field(min_length=1), AfterValidator(_distinct)] = ["127.0.0.1:3306"]
    user: str = "databus"
    password: SecretStr = SecretStr("")
    password_file: Path | None = None
    tls: SourceTls | None = None
    #: `schema.table` patterns with `*` and `?`
    include: Annotated[list[TablePattern], Field(min_length=1)] = ["*.*"]
    exclude: list[TablePattern] = []
    connect_timeout: Duration = 10.0

    @model_validator(mode="after")
    def _read_password(self) -> Self:
        if self.password_file is not None:
            object.__setattr__(self, "password", _secret_of("password_file", self.password_file))
        return self

    def login(self, host: str) -> Login:
        """Give what the client library takes to log in to one of the hosts."""
        name, _, port = host.rpartition(":")
        return Login(
            host=name.strip("[]"),
            port=int(port),
            user=self.user,
            password=self.password.get_secret_value(),
            connect_timeout=self.connect_timeout,
            tls=self.tls.client if self.tls else None,
        )

    def captures(self, schema: str, table: str) -> bool:
        """Say whether the changes of a table are captured."""
        name = f"{schema}.{table}"
        if schema.lower() in _SYSTEM_SCHEMAS:
            return False
        return any(fnmatchcase(name, p) for p in self.include) and not any(fnmatchcase(name, p) for p in self.exclude)

    def captures_some(self, schema: str) -> bool:
        """Say whether tables of a schema may be captured."""
        if not schema or schema.lower() in _SYSTEM_SCHEMAS:
            return False
        included = any(fnmatchcase(schema, p.partition(".")[0]) for p in self.include)
        return included and not any(fnmatchcase(schema, p[:-2]) for p in self.exclude if p.endswith(".*"))

    def mentions_some(self, text: str) -> bool:
        """Say whether a text may name a schema of captured tables."""
        return any(fnmatchcase(text, f"*{p.partition('.')[0]}*") for p in self.include)


_SYSTEM_SCHEMAS = {"mysql", "information_schema", "performance_schema", "sys"}


class RedisSection(_Section):
    """The pipe between reader and publisher, and the leases of dumps."""

    url: str = "redis://127.0.0.1:6379/0"


class Kafka(_Section):
    """Where the changes go."""

    bootstrap_servers: Annotated[list[HostPort], Field(min_length=1)] = ["127.0.0.1:9092"]


class Election(_Section):
    """Which of several replicas of a service is the active one."""

    #: who keeps the lease
    by: Literal["redis", "kubernetes"] = "redis"
    #: the active one renews its lease this often; when it vanishes another takes over within three times as long
    renew: Duration = 2.0


class Reader(_Section):
    """The service that reads the binlog."""

    #: where a pipeline without progress begins: `latest`, `earliest`, `FILE:OFFSET`, `gtid:SET` or `dump:ID`
    start: Annotated[str, AfterValidator(_start)] = "latest"
    #: id among the server's replicas, which must differ from every other's; by default made of the pipeline's name
    server_id: Annotated[int, Field(ge=1, lt=2**32)] | None = None
    #: the reader pauses while this much waits in Redis
    backlog_limit: Size = 256 * 2**20
    #: a row that takes more bytes in the binlog is not read, but told of: publisher.oversize says what becomes of it
    row_limit: Size = 8 * 2**20
    #: what decodes the binlog: our own decoder, or the package mysql-replication (`databus-reader[mysql-replication]`)
    engine: Engine = "native"
    election: Election = Election()
    listen: HostPort = "127.0.0.1:9101"


class Publisher(_Section):
    """The service that writes to Kafka."""

    format: str = "databus"
    #: of the format
    options: dict[str, Any] = {}
    topic: TopicTemplate = "{name}.{schema}.{table}"
    delivery: Literal["exactly_once", "at_least_once"] = "exactly_once"
    partition_by: PartitionBy = "table"
    #: what goes where, in which format; by default all by `format`, `options`, `topic` and `partition_by`, which are
    #: also what rules have that leave them out
    routes: list[Rule] = []
    #: of the hashes that rules ask for
    salt: SecretStr = SecretStr("")
    salt_file: Path | None = None
    #: over which a topic's changes are spread, and which a topic that is created has; by default 1 then, and all that
    #: an existing topic has when the publisher starts
    partitions: Annotated[int, Field(ge=1)] | None = None
    #: of topics that are created; -1 takes the broker's default
    replication_factor: Annotated[int, Field(ge=-1)] = -1
    #: Kafka's settings of topics that are created
    topic_settings: dict[str, TopicSetting] = {}
    #: a source transaction may take this long to pass; the broker's transaction.max.timeout.ms limits it
    transaction_timeout: Duration = 15 * 60
    #: what happens to a record that its topic does not take, or that cannot be encoded
    oversize: Literal["deadletter", "split", "claim_check", "stop"] = "deadletter"
    claim_checks: FileUrl = "file:///var/lib/databus/claim-checks"
    election: Election = Election()
    listen: HostPort = "127.0.0.1:9102"

    @model_validator(mode="after")
    def _read_salt(self) -> Self:
        if self.salt_file is not None:
            object.__setattr__(self, "salt", _secret_of("salt_file", self.salt_file))
        if not self.salt.get_secret_value():
            for number, rule in enumerate(self.routes, 1):
                if rule.hash:
                    raise ValueError(f"routes: rule {number}: hash needs publisher.salt or publisher.salt_file")
        return self

    @property
    def rules(self) -> list[Rule]:
        """The routing rules, complete."""
        defaults = self.model_dump(include={"format", "options", "topic", "partition_by"})
        if not self.routes:
            return [Rule(match=["*.*"], **defaults)]
        return [rule.completed(number, defaults) for number, rule in enumerate(self.routes, 1)]


class Dumps(_Section):
    """The service that takes snapshots."""

    storage: FileUrl = "file:///var/lib/databus/dumps"
    #: complete dumps to keep; older ones are deleted once nobody reads them
    keep: Annotated[int, Field(ge=1)] = 3
    lease_ttl: Duration = 60.0
    #: a part of a dump is closed when it has this many bytes before compression
    part_size: Size = 64 * 2**20
    #: where the others find it
    url: HttpUrl = "http://127.0.0.1:8080"
    listen: HostPort = "127.0.0.1:8080"


class Spark(_Section):
    """The job that keeps the lake."""

    lake: FileUrl = "file:///var/lib/databus/lake"
    table_format: Literal["delta"] = "delta"
    tables: Annotated[list[TablePattern], Field(min_length=1)] = ["*.*"]
    #: the jars of Kafka's and the table format's connectors
    jars: Path = Path("/opt/databus/jars")
    master: str = "local[2]"
    #: pause between micro-batches
    trigger: Duration = 5.0
    listen: HostPort = "127.0.0.1:9103"


class Settings(BaseSettings):
    """Everything; made by `load`."""

    model_config = SettingsConfigDict(
        extra="forbid",
        frozen=True,
        env_prefix="DATABUS__",
        env_nested_delimiter="__",
        nested_model_default_partial_update=True,
    )

    #: of the pipeline
    name: Name
    source: Source = Source()
    redis: RedisSection = RedisSection()
    kafka: Kafka = Kafka()
    reader: Reader = Reader()
    publisher: Publisher = Publisher()
    dumps: Dumps = Dumps()
    spark: Spark = Spark()

    @property
    def server_id(self) -> int:
        """Id of the reader among the server's replicas."""
        return self.reader.server_id or 2**31 + zlib.crc32(self.name.encode()) % 2**31

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Let the environment override the file."""
        return env_settings, init_settings


def config_path() -> Path:
    """Give the file that is read without `--config`."""
    return Path(os.environ.get("DATABUS_CONFIG", "/etc/databus/databus.yaml"))


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add the option `--config`, which gives the path for `load`."""
    parser.add_argument(
        "--config",
        type=Path,
        default=config_path(),
        metavar="FILE",
        help="configuration file (default: %(default)s, or $DATABUS_CONFIG)",
    )


def load(path: Path) -> Settings:
    """Read and validate the configuration. Raises InvalidSettings with every error in it, one a line."""
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidSettings(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidSettings(f"{path}: not UTF-8 text") from error
    except yaml.YAMLError as error:
        raise InvalidSettings(f"{path}: not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise InvalidSettings(f"{path}: expected a mapping of sections (name, source, redis, kafka, …)")
    _refuse_unknown_variables()
    try:
        return Settings(**values)
    except SettingsError as error:
        raise InvalidSettings(f"environment: {error}: a list or mapping is given as JSON") from error
    except ValidationError as error:
        lines = (f"{path}: {_path(e['loc'])}: {e['msg'].removeprefix('Value error, ')}" for e in error.errors())
        raise InvalidSettings("\n".join(lines)) from error


def _refuse_unknown_variables() -> None:
    """Raise InvalidSettings for a variable that looks like an override and overrides nothing."""
    prefix = Settings.model_config["env_prefix"]
    for variable in os.environ:
        if not variable.startswith(prefix):
            continue
        section, _, key = variable.removeprefix(prefix).lower().partition("__")
        field = Settings.model_fields.get(section)
        known = getattr(field.annotation, "model_fields", {}) if field else {}
        if field is None or (key and key.partition("__")[0] not in known):
            raise InvalidSettings(f"environment: {variable} overrides nothing: there is no {section}.{key}".rstrip("."))


def _path(location: tuple[int | str, ...]) -> str:
    if location[:2] == ("publisher", "routes") and len(location) > 2:
        place, *inside = location[2:]
        return ": ".join(["publisher.routes", f"rule {int(place) + 1}", *([_path(tuple(inside))] if inside else [])])
    return ".".join(str(part) for part in location) or "configuration"
