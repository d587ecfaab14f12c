"""Transaction metadata of `debezium-json`: blocks of rows, and the messages before the first and after the last row.

Python encodes the two messages, once for each transaction.
"""

cimport cython
from databus_wire.json_fast_path cimport put_integer
from databus_wire.kafka_records cimport RecordPacker
from databus_wire.msgpack_events cimport Text, text_of
from databus_wire.output cimport Output, append_bytes, end_at, room
from databus_wire.rows_writer cimport OpenBatches, Rows, Transaction
from libc.stdint cimport int64_t


@cython.final
cdef class TransactionWriter:
    def __init__(self, partition, tuple block not None, begin_message, end_message):
        self.partition, self.begin_message, self.end_message = partition, begin_message, end_message
        self.head, self.between, self.middle, self.tail = block

    cdef bint begin(self, OpenBatches open, const Transaction* transaction, const Rows* rows) except -1:
        """Write the BEGIN message before the first row; return False if it has no room."""
        if self.attempt == open.attempt:
            return True
        self.attempt, self.counts = open.attempt, {}
        self.id, key, value = self.begin_message(
            string(transaction.gtid), string(transaction.file), rows.start, transaction.time_us
        )
        return self.pack(open, transaction, key, value, rows.first)

    cdef int64_t count(self, str table, int64_t rows) except -1:
        """Count rows of a table; return how many it had before."""
        cdef int64_t before = self.counts.get(table, 0)
        self.counts[table] = before + rows
        return before

    cdef int append_block(self, Output* out, int64_t total_order, int64_t table_order) except -1:
        """Append the block of a row, from its ordinals in the transaction and among the rows of its table."""
        append_bytes(out, self.head)
        append_bytes(out, self.id)
        append_bytes(out, self.between)
        end_at(out, put_integer(total_order, room(out, 20)))
        append_bytes(out, self.middle)
        end_at(out, put_integer(table_order, room(out, 20)))
        return append_bytes(out, self.tail)

    cdef bint end(self, OpenBatches open, const Transaction* transaction) except -1:
        """Write the END message if there is a BEGIN; return False if it has no room."""
        if self.attempt != open.attempt:
            return True
        key, value = self.end_message(self.counts)
        return self.pack(open, transaction, key, value, transaction.next_row)

    cdef bint pack(self, OpenBatches open, const Transaction* transaction, bytes key, bytes value, int64_t row) except -1:
        cdef RecordPacker batch = open.find(self.partition)
        if batch is None:
            return False
        open.touch(batch)
        if batch.pack_row(transaction.now_ns // 1_000_000, text_of(key), text_of(value), row):
            return True
        open.full = self.partition
        return False


cdef inline str string(Text text):
    return text.data[:text.size].decode()
