"""Templates of JSON text, in which what differs between transactions and rows events are slots."""

from collections.abc import Iterable
from enum import IntEnum
from typing import final

class Slot(IntEnum):
    """What is filled in."""

    #: the transaction's commit time since the epoch
    TIME_S = 1
    TIME_MS = 2
    TIME_US = 3
    TIME_NS = 4
    #: the time of encoding since the epoch
    NOW_MS = 5
    NOW_US = 6
    NOW_NS = 7
    #: the transaction's ordinal in the pipeline
    ORDINAL = 8
    SERVER_ID = 9
    #: the thread's id; null if it is not known
    THREAD = 10
    #: the transaction's GTID as a string; without one, an empty string or null
    GTID = 11
    GTID_OR_NULL = 12
    #: the binlog file as a string
    FILE = 13
    #: the offset at which the rows event starts
    START = 14
    #: file, colon and that offset as a string
    POSITION = 15
    #: a comma and a member `xid`, `gtid` or `thread_id`; nothing if it is not known
    XID_MEMBER = 16
    GTID_MEMBER = 17
    THREAD_MEMBER = 18

@final
class Template:
    """A text of constant parts (bytes) and slots."""

    def __init__(self, parts: Iterable[bytes | Slot]) -> None: ...
