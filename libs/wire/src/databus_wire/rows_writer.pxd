"""Writers of the records of rows events, and what they get: a transaction and its rows, in the memory of an entry."""

from databus_wire.kafka_records cimport RecordPacker
from databus_wire.msgpack_events cimport Text
from databus_wire.msgpack_rows cimport Cursor
from databus_wire.output cimport Output
from databus_wire.row_partitions cimport RowPartitions
from libc.stdint cimport int64_t, uint64_t


cdef enum Action:
    INSERT
    UPDATE
    DELETE


cdef struct Transaction:  # fields of Begin and Commit in databus_core.events
    int64_t ordinal
    Text gtid
    Text file
    uint64_t server_id
    uint64_t thread_id
    int64_t time_us
    bint has_xid
    uint64_t xid
    int64_t now_ns  # time of encoding, since the epoch
    int64_t next_row  # the ordinal that its next captured row would have


cdef struct Rows:  # fields of RowsEvent in databus_core.events
    Action action
    int64_t first  # ordinal of the first row among the captured rows of the transaction
    int64_t count  # changed rows; an update counts once, and has two images
    uint64_t start, end
    Text packed  # msgpack array of the row images


cdef class Counter:
    """Counts the rows of the open transaction that one output publishes."""
    cdef int64_t all  # rows of the whole transaction
    cdef int64_t written  # rows that are written
    cdef uint64_t attempt  # the attempt to publish a transaction that is counted

    cdef int begin(self, uint64_t attempt) noexcept


cdef class OpenBatches:
    """The open batches of partitions, and which of them have records of the transaction that is being published."""
    cdef object find  # returns the open batch of a partition; None: it can have none
    cdef object full  # the partition whose batch has no room for the transaction; None: all have
    cdef uint64_t attempt  # number of the attempt to publish the transaction
    cdef int64_t transaction  # its ordinal
    cdef list touched
    cdef list writers  # those that have looked up batches

    cdef int begin(self, uint64_t attempt, int64_t transaction) except -1
    cdef int touch(self, RecordPacker batch) except -1
    cdef int undo(self) except -1
    cdef int release(self) except -1


cdef class RowsWriter:
    """Writes the records of the rows of one table. Each format has a subclass."""
    cdef tuple partitions
    cdef RowPartitions chooser  # chooses a row's partition; None: there is only one
    cdef Counter counter
    cdef OpenBatches open
    cdef list batches  # by the partition's index: the open batch, None if it was not looked up in this call
    cdef object partition  # of the next records
    cdef RecordPacker batch  # its batch
    cdef Cursor keys  # where the key of the next row is

    cdef bint write(self, const Transaction* transaction, const Rows* rows) except -1
    cdef int trim(self) except -1
    cdef int begin(self, const Rows* rows) except -1
    cdef bint choose(self, const Rows* rows) except -1
    cdef bint has_room(self, const Rows* rows) except -1
    cdef bint choose_for_all(self, const Rows* rows) except -1
    cdef bint use(self, Py_ssize_t partition) except -1
    cdef bint pack(self, const Transaction* transaction, Text key, Text value, int64_t row) except -1


cdef inline Cursor images_of(const Rows* rows) noexcept:
    """Return a cursor at the array of row images."""
    return Cursor(<const unsigned char*> rows.packed.data, <const unsigned char*> rows.packed.data + rows.packed.size)


cdef inline Text written(const Output* out) noexcept:
    return Text(out.data, out.size)


cdef inline int require_actions(tuple parts) except -1:
    """Raise ValueError unless there is a part for each `Action`."""
    if len(parts) != 3:
        raise ValueError("an insert, an update and a delete must each have a part")
    return 0
