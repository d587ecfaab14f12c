"""Writers of the records of rows events. A format that has one need not make Python objects for usual rows."""


cdef class Counter:
    cdef int begin(self, uint64_t attempt) noexcept:
        """Begin to count the rows of a transaction, unless that has begun."""
        if self.attempt != attempt:
            self.attempt, self.all, self.written = attempt, 0, 0
        return 0


cdef class RowsWriter:
    def publish_to(self, partition, Counter counter not None):
        """See rows_writer.pyi."""
        self.partition, self.counter = partition, counter

    cdef bint write(self, const Transaction* transaction, const Rows* rows) except -1:
        """Write the records of an event; return False if they have no room, or are left to the Python path."""
        raise NotImplementedError

    cdef bint pack(self, const Transaction* transaction, Text key, Text value, int64_t row) except -1:
        """Add a record; `row` is the ordinal of its first row among all captured rows."""
        return self.batch.pack_row(transaction.now_ns // 1_000_000, key, value, row)
