"""How far a pipeline is. The truth of it is one record in Kafka, committed together with the data (ADR 2)."""

import msgspec

from databus.errors import ProgressCorrupt
from databus_binlog import Position


class Progress(msgspec.Struct, frozen=True):
    """A resumable position and what was published up to it."""

    #: None until the pipeline's first start has been resolved
    position: Position | None = None
    #: captured transactions published so far
    transaction: int = 0
    #: commit time of the last one, µs since the epoch
    time_us: int = 0
    #: identity of the server whose file and offset the position names; any, as long as it is empty
    server: str = ""
    #: that server's log has before the place what is in the GTID set, and nothing else: one may go on by file, too
    in_order: bool = False


class _Required(msgspec.Struct):
    """What every record tells: without it one that lost its content would mean "start afresh"."""

    position: Position | None
    transaction: int


encode_progress = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(Progress)
_required = msgspec.json.Decoder(_Required)


def decode_progress(record: bytes | None) -> Progress:
    """Read a progress record.

    Raises ProgressCorrupt: a record that cannot be read must never be taken for "start afresh".
    """
    if record is None:
        raise ProgressCorrupt("the progress record in Kafka was deleted by a tombstone")
    try:
        _required.decode(record)
        return _decoder.decode(record)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProgressCorrupt(f"the progress record in Kafka cannot be read: {error}") from error
