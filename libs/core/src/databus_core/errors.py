"""Our errors. An error's branch in this tree decides how it is handled.

Not listed: `databus_dump_api.problems`; `databus_binlog.errors`, which `source_connection` turns into ours; and errors
that are caught close to where they are raised.

DatabusError
├── RetryableError            retry with growing pauses: the dependency may come back
│   ├── SourceUnavailable       the database cannot be reached, or cannot be read yet
│   ├── RedisUnavailable        Redis cannot be reached
│   ├── KafkaUnavailable        Kafka cannot be reached
│   ├── DumpApiUnavailable      dump-api cannot be reached
│   ├── RulesDiffer             another service has other rules in publisher.routes
│   ├── DiskUnavailable         a local folder cannot be written now
│   ├── ObjectStoreUnavailable  S3 cannot be reached, or refuses a request
│   ├── KubernetesUnavailable   the Kubernetes API cannot be reached
│   ├── RegistryUnavailable     the schema registry cannot be reached
│   ├── SparkUnavailable        no session can be opened on the Spark master
│   ├── LakeUnavailable         the lake cannot be reached or written now
│   ├── PipelineNotStarted      a request needs a pipeline that has begun
│   └── LeadershipLost          another replica may be active now: become its standby
├── BackfillRefused           a request that concerns backfills is not possible: nothing was changed
│   ├── BackfillConflict        the state of a table or a backfill does not allow it
│   └── UnknownBackfill         there is no such backfill
├── UsageError                a command was used in a wrong way, which only shows when it runs
├── CannotApply               a DDL statement's effect cannot be derived from its text: read the table again
├── GenerationLost            the pipe's generation has ended: open a new one from Kafka's progress
├── FatalError                stop and exit with `exit_code`: an operator has to act
│   ├── InvalidSettings         the configuration is wrong
│   │   └── RuleMismatch          a rule does not fit a table
│   ├── SourceNotReady          a setting, a grant or a position of the database is wrong
│   │   └── SourceRefused         the reader cannot continue at a host
│   ├── StatementFormat         a statement may have changed captured rows that the binlog does not contain
│   ├── SchemaMismatch          a row, a table or a message does not fit the schema that is expected
│   │   └── UnknownTable          a row's columns are named neither in the binlog nor in the schema history
│   ├── ProgressCorrupt         the progress record in Kafka was deleted or cannot be read
│   ├── SchemaHistoryCorrupt    the schema history in Kafka is missing or cannot be read
│   ├── TableStatesCorrupt      the records of backfills and tables in doubt cannot be read
│   ├── SchemaRefused           the schema registry rejects the schema of a table
│   ├── DumpUnusable            a dump cannot be used, for instance because it failed or is damaged
│   │   └── DumpRefused           dump-api does not take such a dump, for instance because no table matches
│   ├── TopicRefused            Kafka refuses a topic
│   │   ├── TopicNameRefused      it does not accept the name of the topic
│   │   └── WriteDenied           the topic exists, and the account may not write to it
│   ├── ChangesLost             Kafka no longer has changes that are needed
│   ├── ChangeMissing           a change was not published: it is a dead letter
│   └── Fenced                  another process has taken over our transactional id
└── PoisonError               this record cannot be processed, others can
    └── RecordTooLarge          a batch of records is larger than its topic accepts
"""

from enum import StrEnum

from databus_core.log_events import Fields

#: advice to an operator when the pipeline cannot continue from its progress without missing changes
START_OVER = (
    "to start over with all rows, stop reader and publisher, run `databus pipeline reset --to snapshot`, and start them"
)


def skip_advice(transaction: str) -> str:
    """Return the advice to an operator when the pipeline cannot continue because of one transaction.

    `transaction` is its GTID or a position in it.
    """
    command = f"databus pipeline skip --transaction {transaction}"
    return f"to leave out only this transaction and park its tables, run `{command}`"


class DatabusError(Exception):
    """The base class of all our errors. Each line of the message is one fault: what happened, where, what to do."""

    exit_code = 1
    #: fields of the error's log line; each `logs.bound` block that the error leaves adds its own
    fields = Fields()


class RetryableError(DatabusError):
    """A dependency is unavailable; the work is retried with backoff."""

    exit_code = 75  # EX_TEMPFAIL of sysexits.h: a supervisor may restart the process
    #: name of the dependency in the log
    dependency = ""
    #: the source's unavailable host; empty if all its hosts are unavailable, or for another dependency
    host = ""


class SourceUnavailable(RetryableError):
    """The database cannot be reached, closed the connection, or cannot be read yet."""

    dependency = "source"

    def __init__(self, text: str, host: str = "") -> None:
        super().__init__(text)
        self.host = host


class RedisUnavailable(RetryableError):
    """Redis cannot be reached."""

    dependency = "redis"


class KafkaUnavailable(RetryableError):
    """Kafka cannot be reached."""

    dependency = "kafka"


class DumpApiUnavailable(RetryableError):
    """dump-api cannot be reached or is not ready."""

    dependency = "dump-api"


class RulesDiffer(RetryableError):
    """Another service has other rules in `publisher.routes`."""

    dependency = "rules"


class DiskUnavailable(RetryableError):
    """A local folder cannot be written or read now, for instance because the disk is full."""

    dependency = "disk"


class ObjectStoreUnavailable(RetryableError):
    """S3 cannot be reached, or refuses a request."""

    dependency = "s3"


class KubernetesUnavailable(RetryableError):
    """The Kubernetes API cannot be reached or is not ready."""

    dependency = "kubernetes"


class RegistryUnavailable(RetryableError):
    """The schema registry cannot be reached or is not ready."""

    dependency = "schema-registry"


class SparkUnavailable(RetryableError):
    """No session can be opened on the Spark master."""

    dependency = "spark"


class LakeUnavailable(RetryableError):
    """The lake cannot be reached or written now, for instance because another sink writes to it."""

    dependency = "lake"


class PipelineNotStarted(RetryableError):
    """The pipeline has not begun: reader and publisher have to run first."""


class LeadershipLost(RetryableError):
    """Another replica has acquired our lease, or may have, for instance because we did not renew it in time."""


class GenerationLost(DatabusError):
    """The generation of `databus_core.pipe` has ended or has to end, e.g. because another reader has claimed it."""


class BackfillRefused(DatabusError):
    """A request that concerns backfills is not possible; nothing was changed. Each line of the message is one fault."""


class BackfillConflict(BackfillRefused):
    """The state of a table, or of a backfill, does not allow what was requested."""


class UnknownBackfill(BackfillRefused):
    """There is no backfill with this id."""


class CannotApply(DatabusError):
    """The effect of a DDL statement cannot be derived from its text."""


class UsageError(DatabusError):
    """A command was used in a wrong way, which only shows when it runs."""

    exit_code = 2


class FatalError(DatabusError):
    """An error that a retry cannot solve."""

    #: whether changes of any captured table may be missing from the source: `doubt.all` says what happens then
    doubts_all = False


class InvalidSettings(FatalError):
    """The configuration or an option is wrong, or what it needs is missing or not permitted."""

    exit_code = 78  # EX_CONFIG


class RuleMismatch(InvalidSettings):
    """A rule does not fit a table, for instance because it names a column that was dropped."""


class SourceNotReady(FatalError):
    """The database is not set up for change data capture, or does not have the position to read from."""

    exit_code = 78


class Refusal(StrEnum):
    """Why the reader does not read from a host."""

    #: the host has purged changes that are still to be read
    PURGED = "purged"
    #: the host has not replicated everything that was published yet
    BEHIND = "behind"
    #: the host lacks transactions that were published, and has others
    OTHER_HISTORY = "other_history"
    #: the host is the server that was read before, and its binlog was reset or lost its end
    RESET = "reset"
    #: the position has to be found by GTID, but the progress, the host or the host's next transaction has no GTID
    NO_GTIDS = "no_gtids"
    #: another fault, such as a wrong setting of the host or of the connection to it
    NOT_READY = "not_ready"


class SourceRefused(SourceNotReady):
    """The reader cannot continue at a host, for the given reason."""

    def __init__(self, reason: Refusal, text: str) -> None:
        super().__init__(text)
        self.reason = reason
        self.doubts_all = reason in _DOUBT_ALL

    @property
    def is_lasting(self) -> bool:
        """Whether the host will not have later what is missing."""
        return self.reason in _DOUBT_ALL or self.reason is Refusal.NO_GTIDS

    def with_advice(self) -> "SourceRefused":
        """Return the same refusal with what to do if no other host can be read."""
        return SourceRefused(self.reason, f"{self}; {START_OVER}") if self.is_lasting else self


_DOUBT_ALL = {Refusal.PURGED, Refusal.RESET, Refusal.OTHER_HISTORY}


class StatementFormat(FatalError):
    """A statement may have changed captured rows that the binlog does not contain."""


class SchemaMismatch(FatalError):
    """A row, a table or a message does not fit the schema that is expected."""


class UnknownTable(SchemaMismatch):
    """The columns of a row are named neither in the binlog nor in the schema history."""


class ProgressCorrupt(FatalError):
    """The committed progress was deleted or cannot be read; starting over would lose or repeat rows."""


class SchemaHistoryCorrupt(FatalError):
    """The schema history cannot be read or is missing; without it columns could get wrong names."""


class TableStatesCorrupt(FatalError):
    """The records of backfills and tables in doubt in Kafka cannot be read; ignoring them would hide doubts."""


class SchemaRefused(FatalError):
    """The schema registry rejects a schema, or does not permit us to write its subject."""


class DumpUnusable(FatalError):
    """A dump cannot be used: for instance it failed, its files are damaged, or dump-api refuses it."""


class DumpRefused(DumpUnusable):
    """dump-api does not take a dump of these tables: a pattern matches none, or is no pattern."""


class TopicRefused(FatalError):
    """Kafka refuses to create a topic, or to accept records for it: a right is missing, or a policy forbids it."""


class TopicNameRefused(TopicRefused):
    """Kafka does not accept the name of a topic: it is too long, or too similar to that of an existing topic."""


class WriteDenied(TopicRefused):
    """The account lacks the right WRITE on an existing topic."""


class ChangesLost(FatalError):
    """Kafka no longer has changes that are needed."""


class ChangeMissing(FatalError):
    """A change that is needed was not published: it is a dead letter."""


class Fenced(FatalError):
    """Another producer with our transactional id (of a publisher, or of a replay of dead letters) is active."""


class PoisonError(DatabusError):
    """A record that cannot be processed."""


#: what to do if a topic does not accept a record; goes after the topic's name
RAISE_LIMIT = "raise its max.message.bytes, and its segment.bytes if that is lower"


class RecordTooLarge(PoisonError):
    """A batch of one or several records is larger than its topic accepts."""

    def __init__(self, topic: str, size: int, records: int) -> None:
        super().__init__(f"topic {topic} does not accept a batch of {size} bytes: {RAISE_LIMIT}")
        self.topic, self.size, self.records = topic, size, records
