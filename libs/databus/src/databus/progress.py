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


encode_progress = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(Progress)


def decode_progress(record: bytes) -> Progress:
    """Read a progress record.

    Raises ProgressCorrupt: a record that cannot be read must never be taken for "start afresh".
    """
    try:
        return _decoder.decode(record)
    except msgspec.DecodeError as error:
        raise ProgressCorrupt(f"the progress record in Kafka cannot be read: {error}") from error
