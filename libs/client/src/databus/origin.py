"""Where changes come from."""

import msgspec

from databus_binlog import Position


class Origin(msgspec.Struct, frozen=True):
    """Where changes come from: a record in Kafka, or a line of a dump's file."""

    #: place in the order of all that the pipeline publishes (16 digits of the transaction, 10 of the row), which sorts
    #: as text; that of the record's first row. Empty: a row of a dump
    sequence: str = ""
    #: end of the event in the binlog; in the formats of Debezium and Maxwell, its start. Of a row of a dump, the dump's
    #: position. None if the format does not have it
    position: Position | None = None
    #: when the record was published, in ms since the epoch; of a row of a dump, when the dump was requested
    time_ms: int = 0
    topic: str = ""
    partition: int = -1
    offset: int = -1
    #: file of the dump and number of the line in it, from 0
    file: str = ""
    line: int = -1
    #: of a record of which a chunked dump has some changes: how many of the others come before these rows, and how many
    #: with them; 0: these are the last
    before: int = 0
    through: int = 0
    #: whether the rows were read from the table: rows of a dump or of a backfill
    is_snapshot: bool = False
    #: digest of a statement, of which each partition has a copy
    statement: str = ""

    @property
    def transaction(self) -> int:
        """Ordinal of the transaction in the pipeline; 0 for a row of a dump."""
        return int(self.sequence[:16] or 0)
