"""Writers of the records of rows events. A format that has one need not make Python objects for ordinary rows."""

from databus_wire.msgpack_rows cimport read_array


cdef class Counter:
    cdef int begin(self, uint64_t attempt) noexcept:
        """Begin to count the rows of a transaction, unless that has begun."""
        if self.attempt != attempt:
            self.attempt, self.all, self.written = attempt, 0, 0
        return 0


cdef class OpenBatches:
    def __cinit__(self):
        self.touched, self.writers = [], []

    cdef int begin(self, uint64_t attempt, int64_t transaction) except -1:
        """Begin to publish a transaction."""
        self.attempt, self.transaction, self.full = attempt, transaction, None
        self.touched.clear()
        return 0

    cdef int touch(self, RecordPacker batch) except -1:
        """Prepare a batch for the records of the transaction, unless that was done."""
        if batch.attempt == self.attempt:
            return 0
        batch.set_mark(self.attempt)
        batch.set_transaction(self.transaction)
        self.touched.append(batch)
        return 0

    cdef int undo(self) except -1:
        """Remove the records of the transaction."""
        for batch in self.touched:
            (<RecordPacker> batch).undo()
        return 0

    cdef int release(self) except -1:
        """Forget all batches: a writer that is not used for a long time must not keep one that was sent."""
        for writer in self.writers:
            (<RowsWriter> writer).batch = (<RowsWriter> writer).batches = None
            (<RowsWriter> writer).trim()
        self.writers.clear()
        self.touched.clear()
        return 0


cdef class RowsWriter:
    def publish_to(self, tuple partitions not None, tuple key not None, Counter counter not None):
        """See rows_writer.pyi."""
        self.partitions, self.counter = partitions, counter
        self.chooser = RowPartitions(key, len(partitions)) if len(partitions) > 1 else None

    cdef bint write(self, const Transaction* transaction, const Rows* rows) except -1:
        """Write the records of an event; return False if they have no room, or are left to the Python path."""
        raise NotImplementedError

    cdef int trim(self) except -1:
        """Release memory that only a large row needs."""
        raise NotImplementedError

    cdef int begin(self, const Rows* rows) except -1:
        """Begin with the rows of an event: `choose` is to be called for each."""
        self.keys = images_of(rows)
        read_array(&self.keys)
        return 0

    cdef bint choose(self, const Rows* rows) except -1:
        """Choose the partition of the next row. Return False if it can have no batch, or an update changes it."""
        cdef Py_ssize_t partition
        if self.chooser is None:
            return self.use(0)
        partition = self.chooser.next(&self.keys)
        if rows.action == UPDATE and self.chooser.next(&self.keys) != partition:
            return False
        return self.use(partition)

    cdef bint has_room(self, const Rows* rows) except -1:
        """Return False if the batch has less room than the packed rows take: a message is hardly ever smaller."""
        if self.batch.used + rows.packed.size < self.batch.limit:
            return True
        self.open.full = self.partition
        return False

    cdef bint choose_for_all(self, const Rows* rows) except -1:
        """Choose the partition of all rows. Return False if they have several, or where `choose` does."""
        cdef RecordPacker first
        cdef int64_t number
        self.begin(rows)
        if not self.choose(rows):
            return False
        first = self.batch
        if self.chooser is not None:
            for number in range(1, rows.count):
                if not self.choose(rows) or self.batch is not first:
                    return False
        return True

    cdef bint use(self, Py_ssize_t partition) except -1:
        """Add the next records to a partition; return False if it can have no batch."""
        if self.batches is None:
            self.batches = [None] * len(self.partitions)
            self.open.writers.append(self)
        self.partition, self.batch = self.partitions[partition], self.batches[partition]
        if self.batch is None:
            self.batch = self.batches[partition] = self.open.find(self.partition)
            if self.batch is None:
                return False
        self.open.touch(self.batch)
        return True

    cdef bint pack(self, const Transaction* transaction, Text key, Text value, int64_t row) except -1:
        """Add a record; `row` is the ordinal of its first row among all captured rows."""
        if self.batch.pack_row(transaction.now_ns // 1_000_000, key, value, row):
            return True
        self.open.full = self.partition
        return False
