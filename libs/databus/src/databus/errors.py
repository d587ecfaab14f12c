"""Every error of ours but the answers to HTTP requests. The branch an error hangs on decides what happens.

DatabusError
├── RetryableError            wait, then try again: the neighbour may come back
│   ├── SourceUnavailable       the database cannot be reached
│   ├── RedisUnavailable        Redis cannot be reached
│   ├── KafkaUnavailable        Kafka cannot be reached
│   ├── DumpApiUnavailable      dump-api cannot be reached
│   ├── KubernetesUnavailable   the API of Kubernetes cannot be reached
│   ├── RegistryUnavailable     the schema registry cannot be reached
│   └── LeadershipLost          another replica may be the active one by now: be its standby
├── CannotApply               a statement does not tell what it makes of a table: read the table again
├── GenerationLost            the pipe's generation is over: begin a new one from Kafka's progress
├── FatalError                stop, exit with `exit_code`: an operator has to act
│   ├── InvalidSettings         the configuration is wrong
│   ├── SourceNotReady          a setting, a grant or a position of the database is wrong
│   │   └── SourceRefused         a host does not have what the progress needs
│   ├── StatementFormat         a captured table was changed by a statement, not by rows
│   ├── SchemaMismatch          a row does not fit what is known of its table
│   ├── ProgressCorrupt         the progress record in Kafka cannot be read
│   ├── SchemaHistoryCorrupt    the schema history in Kafka is missing or cannot be read
│   ├── SchemaRefused           the schema registry does not take a schema
│   ├── DumpUnusable            a dump failed, or is not what its manifest says
│   ├── ChangesLost             Kafka no longer holds changes that are needed
│   └── Fenced                  another publisher has taken this pipeline over
└── PoisonError               this record cannot be handled, others can
    └── RecordTooLarge          Kafka refuses a batch or record of this size
"""

from enum import StrEnum

#: What is left to do where the binlog does not tell what happened.
START_AFRESH = (
    "to go on behind it, delete the pipeline's progress topic, start with reader.start=latest and take a new dump"
)


class DatabusError(Exception):
    """Root of all errors of ours; its message is one line that says what to do."""

    exit_code = 1


class RetryableError(DatabusError):
    """A neighbour is away; the work is tried again with backoff."""

    exit_code = 75  # EX_TEMPFAIL of sysexits.h: a supervisor may start us again


class SourceUnavailable(RetryableError):
    """The database cannot be reached or hung up."""


class RedisUnavailable(RetryableError):
    """Redis cannot be reached."""


class KafkaUnavailable(RetryableError):
    """Kafka cannot be reached."""


class DumpApiUnavailable(RetryableError):
    """dump-api cannot be reached or is not ready."""


class KubernetesUnavailable(RetryableError):
    """The API server of Kubernetes cannot be reached or does not serve."""


class RegistryUnavailable(RetryableError):
    """The schema registry cannot be reached or does not serve."""


class LeadershipLost(RetryableError):
    """The lease of the active replica is another's, or could not be renewed in time."""


class GenerationLost(DatabusError):
    """The generation is gone, claimed by another, or has a hole."""


class CannotApply(DatabusError):
    """The text of a statement does not tell what it makes of a table."""


class FatalError(DatabusError):
    """Trying again cannot help."""


class InvalidSettings(FatalError):
    """The configuration file or an override is wrong."""

    exit_code = 78  # EX_CONFIG


class SourceNotReady(FatalError):
    """The database is not set up for change data capture, or lacks the wanted position."""

    exit_code = 78


class Refusal(StrEnum):
    """Why the reader does not go on at a host."""

    #: it no longer has changes that are still to be read
    PURGED = "purged"
    #: it does not have yet what was published
    BEHIND = "behind"
    #: it lacks what was published, and has what was not
    OTHER_HISTORY = "other_history"
    #: it is the server that was read, and its log has begun anew or lost its end
    RESET = "reset"
    #: the progress tells a place in another server's files only
    NO_GTIDS = "no_gtids"
    #: its settings, or those for the connection, are wrong
    NOT_READY = "not_ready"


class SourceRefused(SourceNotReady):
    """A host does not have what the progress needs."""

    def __init__(self, reason: Refusal, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class StatementFormat(FatalError):
    """A statement changed a captured table and the binlog holds no rows of it."""


class SchemaMismatch(FatalError):
    """A row image does not fit the table's known columns."""


class ProgressCorrupt(FatalError):
    """The committed progress cannot be read; starting afresh would lose or repeat rows."""


class SchemaHistoryCorrupt(FatalError):
    """The history of tables cannot be read, or is gone; starting without it would give rows wrong names."""


class SchemaRefused(FatalError):
    """The schema registry does not take a schema, or us."""


class DumpUnusable(FatalError):
    """A dump failed, or its files are not what its manifest says."""


class ChangesLost(FatalError):
    """Kafka no longer holds the changes from where they are needed."""


class Fenced(FatalError):
    """Another producer with this pipeline's transactional id is active."""


class PoisonError(DatabusError):
    """One record that cannot be handled."""


class RecordTooLarge(PoisonError):
    """A batch, of one record or of several, is larger than its topic takes."""

    def __init__(self, topic: str, size: int, records: int) -> None:
        super().__init__(f"topic {topic} takes no batch of {size} bytes: raise its max.message.bytes")
        self.topic, self.size, self.records = topic, size, records
