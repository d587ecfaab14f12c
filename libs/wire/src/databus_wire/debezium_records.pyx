"""Writes the records of the format `debezium-json`: one for each changed row, and a tombstone after a delete."""

cimport cython
from cpython.mem cimport PyMem_Free
from databus_wire.debezium_transactions cimport TransactionWriter
from databus_wire.json_fast_path cimport put_integer
from databus_wire.json_rows cimport RowWriter
from databus_wire.msgpack_events cimport Text
from databus_wire.msgpack_rows cimport Cursor, read_array
from databus_wire.output cimport Output, append, append_bytes, clear, end_at, room
from databus_wire.rows_writer cimport DELETE, UPDATE, Rows, RowsWriter, Transaction, images_of, require_actions, written
from databus_wire.templates cimport Template
from libc.stdint cimport int64_t


@cython.final
cdef class DebeziumWriter(RowsWriter):
    cdef RowWriter images
    cdef tuple key_columns
    cdef bytes key_head, key_tail
    cdef tuple envelopes  # by `Action`; None: the operation is skipped
    cdef bint tombstones
    cdef TransactionWriter transactions  # None: without transaction metadata
    cdef str table
    cdef Output key, middle, tail, times

    def __init__(
        self, RowWriter images not None, key, tuple envelopes not None, bint tombstones,
        TransactionWriter transactions, str table not None
    ):
        require_actions(envelopes)
        self.images = images
        if key is not None:
            self.key_columns, self.key_head, self.key_tail = key
        self.envelopes, self.tombstones = envelopes, tombstones and key is not None
        self.transactions, self.table = transactions, table

    def __dealloc__(self):
        PyMem_Free(self.key.data)
        PyMem_Free(self.middle.data)
        PyMem_Free(self.tail.data)
        PyMem_Free(self.times.data)

    cdef int trim(self) except -1:
        return clear(&self.images.out)

    cdef bint write(self, const Transaction* transaction, const Rows* rows) except -1:
        envelope = self.envelopes[<int> rows.action]
        if envelope is None:
            if rows.action == UPDATE and self.chooser is not None:
                return False  # one that changes the partition is a delete and an insert
        elif not self.write_rows(transaction, rows, <tuple> envelope):
            return False
        # Every event has rows, so this holds once in a transaction.
        if self.transactions is not None and self.counter.written + rows.count == self.counter.all:
            return self.transactions.end(self.open, transaction)
        return True

    cdef bint write_rows(self, const Transaction* transaction, const Rows* rows, tuple envelope) except -1:
        cdef Cursor images = images_of(rows)
        cdef int64_t number, before = 0
        head, between, middle, tail, times = envelope
        if self.transactions is not None:
            if not self.transactions.begin(self.open, transaction, rows):
                return False
            before = self.transactions.count(self.table, rows.count)
        read_array(&images)
        self.begin(rows)
        self.middle.size = self.tail.size = self.times.size = 0
        (<Template?> middle).append_to(&self.middle, transaction, rows)
        (<Template?> tail).append_to(&self.tail, transaction, rows)
        (<Template?> times).append_to(&self.times, transaction, rows)
        for number in range(rows.count):
            if not self.write_row(transaction, rows, &images, number, before, head, between):
                return False
        return True

    cdef bint write_row(
        self, const Transaction* transaction, const Rows* rows, Cursor* images, int64_t number, int64_t before,
        bytes head, bytes between
    ) except -1:
        cdef Output* out = &self.images.out
        if not self.choose(rows):
            return False
        self.images.load(images)
        if rows.action == UPDATE:
            self.images.load_other(images)
            if self.key_columns is not None and self.images.differs(self.key_columns):
                return False  # three records
        if self.key_columns is not None:
            self.write_key()
        clear(out)
        append_bytes(out, head)
        self.images.append_object(False, True)
        if rows.action == UPDATE:
            append_bytes(out, between)
            self.images.swap()
            self.images.append_object(False, True)
        append(out, self.middle.data, self.middle.size)
        end_at(out, put_integer(number, room(out, 20)))
        append(out, self.tail.data, self.tail.size)
        if self.transactions is not None:
            self.transactions.append_block(out, self.counter.written + number + 1, before + number + 1)
        append(out, self.times.data, self.times.size)
        return self.pack_row(transaction, rows, number)

    cdef int write_key(self) except -1:
        clear(&self.images.out)
        append_bytes(&self.images.out, self.key_head)
        self.images.append_columns(self.key_columns)
        append_bytes(&self.images.out, self.key_tail)
        self.key.size = 0
        return append(&self.key, self.images.out.data, self.images.out.size)

    cdef bint pack_row(self, const Transaction* transaction, const Rows* rows, int64_t number) except -1:
        cdef Text nothing = Text(NULL, 0)
        cdef Text key = nothing if self.key_columns is None else written(&self.key)
        if not self.pack(transaction, key, written(&self.images.out), rows.first + number):
            return False
        if rows.action == DELETE and self.tombstones:
            return self.pack(transaction, key, nothing, rows.first + number)
        return True
