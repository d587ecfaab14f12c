"""How far a mirror has come: the text that each commit to the mirror carries (see `databus_spark.table`)."""

import msgspec

from databus_core.kafka_ends import Offsets
from databus_spark.types import TypeOptions, literal


class DumpBase(msgspec.Struct, frozen=True):
    """The dump that a mirror's rows are from, while the next entries of the change log may be older than it."""

    id: str
    #: binlog position of the dump
    file: str
    position: int
    #: the last transaction that was published when the pipeline had passed the dump: all later ones are newer than it
    until: int
    #: Records from these offsets on are newer than the dump, whatever their position: after a failover, it is of
    #: another server.
    passed: Offsets

    @property
    def newer_entries(self) -> str:
        """The SQL condition of the entries that are newer than the dump."""
        number = int(self.file.rpartition(".")[2])
        entry = "try_cast(substring_index(_file, '.', -1) as bigint)"
        newer = f"{entry} > {number} or ({entry} = {number} and _position > {self.position})"
        passed = literal(msgspec.json.encode(self.passed).decode())
        known = f"from_json({passed}, 'map<string, map<string, bigint>>')[_topic][cast(_partition as string)]"
        return f"{newer} or _offset >= coalesce({known}, 0)"


class MirrorState(msgspec.Struct, frozen=True):
    """How far a mirror has come."""

    #: the mirror follows the change log after this transaction: it has all up to it
    transaction: int
    #: definition of its rows, as in a message; empty: the table has no mirror; such a state is only in memory
    definition: str
    base: DumpBase | None = None
    #: whether the table was dropped or renamed, and has no rows
    dropped: bool = False
    #: number of the dump's files that it has while it is loaded in several steps; None: it has all
    files: int | None = None
    #: with which its columns were made
    types: TypeOptions = TypeOptions()
    #: whether a statement of the next transaction has removed all rows; further changes of that transaction may follow
    emptied: bool = False

    @property
    def as_of(self) -> int:
        """Ordinal of the transaction after which the table had these rows."""
        return self.transaction + self.emptied


def decode_state(text: str) -> MirrorState:
    """Decode the text of a commit to a mirror."""
    return msgspec.json.decode(text, type=MirrorState)


def encode_state(state: MirrorState) -> str:
    """Encode what `decode_state` decodes."""
    return msgspec.json.encode(state).decode()
