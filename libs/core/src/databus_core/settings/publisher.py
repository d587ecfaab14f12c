"""The section `publisher`: formats, topics, delivery, and records that Kafka does not accept."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, SecretStr, model_validator

from databus_core.settings.rules import PartitionBy, Rule
from databus_core.settings.services import Election
from databus_core.settings.topics import TopicTemplate
from databus_core.settings.values import Duration, HostPort, Section, StorageUrl, TopicSetting

#: codecs of record batches; Kafka has others, which are slower or compress less
Compression = Literal["none", "lz4", "zstd"]

#: options with which a format publishes the statements that changed rows
_STATEMENT_OPTIONS = ("include_query", "output_row_query")


def _require_rules(rules: list[Rule]) -> list[Rule]:
    if not rules:
        raise ValueError("the list has no rule: to publish every table by the same settings, remove routes")
    return rules


class Publisher(Section):
    """The service that writes to Kafka."""

    format: str = "databus"
    """Message format."""
    options: dict[str, Any] = {}
    """Options of the message format, for example `{compat: strict}` for `databus`."""
    topic: TopicTemplate = "{name}.{schema}.{table}"
    """Template of topic names with `{name}` (of the pipeline), `{schema}` and `{table}`."""
    escape_names: bool = False
    """Whether schema and table are escaped in names of topics, so that these differ for all tables."""
    delivery: Literal["exactly_once", "at_least_once"] = "exactly_once"
    """Delivery guarantee; `at_least_once` is for brokers without transactions."""
    partition_by: PartitionBy = "table"
    """What decides about a change's partition: its table, its key (primary, else unique), or nothing (`single`)."""
    routes: Annotated[list[Rule], AfterValidator(_require_rules)] | None = None
    """Rules that select formats and topics by table, leave tables, columns or rows out, and mask or hash values."""
    salt: SecretStr = SecretStr("")
    """Secret for the hashes of rules with `hash`; every service that reads such rules needs it."""
    salt_file: Path | None = None
    """File with the salt, used instead of `salt`."""
    partitions: Annotated[int, Field(ge=1)] | None = None
    """Partitions used per topic, and created in new topics; by default all of an existing topic, and 1 in new ones."""
    replication_factor: Annotated[int, Field(ge=-1)] = -1
    """Replication factor of topics that the publisher creates; -1 is the broker's default."""
    topic_settings: dict[str, TopicSetting] = {}
    """Kafka settings of topics that the publisher creates, as in `{retention.ms: 1000}`; other topics keep theirs."""
    compression: Compression = "none"
    """Compression of the records in the topics of changes; it takes more CPU time than all else in the publisher."""
    transaction_timeout: Duration = 15 * 60.0
    """How long publishing a source transaction may take; the broker's `transaction.max.timeout.ms` must allow it."""
    oversize: Literal["deadletter", "split", "claim_check", "stop"] = "deadletter"
    """What happens to a record that its topic does not accept or that cannot be encoded."""
    publish_partial: bool = False
    """Whether updates and deletes that lack BLOB and TEXT values (`binlog_row_image=NOBLOB`) are published."""
    claim_checks: StorageUrl = "file:///var/lib/databus/claim-checks"
    """Folder, or `s3://bucket/prefix`, of the values stored as files with `oversize: claim_check`."""
    election: Election = Election()
    """The election among replicas of the publisher."""
    listen: HostPort = "127.0.0.1:9102"
    """Address of the publisher's `/healthz`, `/readyz` and `/metrics`."""

    @model_validator(mode="after")
    def _read_salt(self) -> Self:
        self.load_secret("salt")
        if not self.salt.get_secret_value():
            for number, rule in enumerate(self.routes or [], 1):
                if rule.hash:
                    raise ValueError(f"routes: rule {number}: hash needs publisher.salt or publisher.salt_file")
        return self

    @property
    def rules(self) -> list[Rule]:
        """The rules of `routes` with this section's defaults; one rule for all tables if `routes` is empty."""
        defaults = self.model_dump(include={"format", "options", "topic", "escape_names", "partition_by"})
        if not self.routes:
            return [Rule(match=["*.*"], **defaults)]
        return [rule.completed(number, defaults) for number, rule in enumerate(self.routes, 1)]

    @property
    def needs_statements(self) -> bool:
        """Whether an output may publish the statements that changed rows; MariaDB sends them only on request."""
        return any(rule.options.get(option) for rule in self.rules if not rule.drop for option in _STATEMENT_OPTIONS)
