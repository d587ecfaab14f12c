"""How far a pipeline has published. The source of truth is a Kafka record.

With `exactly_once` it is written in the transaction of the data, else after the data is delivered (ADR 2).
"""

import msgspec

from databus_binlog import Position
from databus_core.errors import ProgressCorrupt


class PreparedTransaction(msgspec.Struct, frozen=True, kw_only=True):
    """An XA transaction with captured rows that is prepared, and neither committed nor rolled back."""

    #: as XA COMMIT accepts it: `X'gtrid',X'bqual',format`, with hexadecimal digits
    xid: str
    #: GTID of the XA PREPARE; empty if it has none
    gtid: str
    #: a resumable position before the transaction: its rows can be read again from there
    position: Position
    #: identity of the server that the position's file and offset belong to
    server: str
    #: as in `Progress`, for this position
    in_order: bool
    #: time of the XA PREPARE, in µs since the epoch
    time_us: int


class Reset(msgspec.Struct, frozen=True):
    """A reset: earlier changes may be missing, or be published again after it."""

    #: the ordinal that it took; no transaction has it
    transaction: int
    #: whether a TRUNCATE and all rows of each captured table follow
    snapshot: bool = False


class Routes(msgspec.Struct, frozen=True):
    """The rules by which the publisher publishes."""

    #: see `databus_core.routes.fingerprint`
    fingerprint: str
    #: ordinal of the last transaction that was published by other rules, and the fingerprint of these; or 0 and empty
    after: int = 0
    before: str = ""
    #: `after` of the rules before
    before_after: int = 0


class Progress(msgspec.Struct, frozen=True):
    """A resumable position and what was published up to it."""

    #: None until the reader has resolved where the pipeline begins
    position: Position | None = None
    #: number of the last published transaction (see `Begin.transaction`), or of a reset after it; 0 if there is none
    transaction: int = 0
    #: Commit time of the last transaction before the position, captured or not, in µs since the epoch. If the reader
    #: has read none, when it started; 0 if it has not started.
    time_us: int = 0
    #: identity of the server that the position's file and offset belong to; empty if it is not known
    server: str = ""
    #: Whether that server's log contains, up to the offset, exactly the transactions of the GTID set. If so, the reader
    #: can also resume by file and offset.
    in_order: bool = False
    #: Where the pipeline begins instead of at `reader.start`, if a reset has set it. `position` is None then, and
    #: `server` and `in_order` refer to `start`.
    start: Position | None = None
    #: whether the pipeline begins with a backfill of all captured tables, because a reset has set it
    snapshot: bool = False
    #: transactions before the position whose rows are published when their XA COMMIT comes
    prepared: tuple[PreparedTransaction, ...] = ()
    #: the last reset; None: the pipeline was never reset
    reset: Reset | None = None
    #: None until a publisher has begun
    routes: Routes | None = None
    #: Ordinal of the last transaction that was read from another log: that of another server, or of this one before its
    #: log was reset. 0: there is none, apart from those before the last reset of the pipeline.
    other_log_until: int = 0
    #: Changes with the first commit of records to a topic in a generation. While it stays the same, no record is in
    #: another topic or partition than before. None: the publisher is of a version that does not count.
    topics_opened: int | None = None

    @property
    def unbroken_after(self) -> int:
        """Ordinal of the last reset or change of rules. If a dump is older, changes after it may be missing."""
        return max(self.reset.transaction if self.reset else 0, self.routes.after if self.routes else 0)


class _Required(msgspec.Struct):
    """The fields that every record has. They are required, so that `{}` is not read as "not begun yet"."""

    position: Position | None
    transaction: int


encode_progress = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(Progress)
_required = msgspec.json.Decoder(_Required)


def decode_progress(record: bytes | None) -> Progress:
    """Decode a progress record.

    Raises ProgressCorrupt: a record that cannot be decoded must never be read as "not begun yet".
    """
    if record is None:
        raise ProgressCorrupt("the progress record in Kafka was deleted by a tombstone")
    try:
        _required.decode(record)
        return _decoder.decode(record)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProgressCorrupt(f"the progress record in Kafka cannot be read: {error}") from error
