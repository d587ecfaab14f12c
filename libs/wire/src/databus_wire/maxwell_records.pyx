"""Writes the records of the format `maxwell-json`: one for each changed row."""

cimport cython
from cpython.mem cimport PyMem_Free
from databus_wire.json_fast_path cimport put_integer
from databus_wire.json_rows cimport RowWriter
from databus_wire.msgpack_events cimport Text
from databus_wire.msgpack_rows cimport Cursor, read_array
from databus_wire.output cimport Output, append, append_bytes, clear, end_at, room
from databus_wire.rows_writer cimport UPDATE, Rows, RowsWriter, Transaction, images_of, require_actions, written
from databus_wire.templates cimport Template
from libc.stdint cimport int64_t


@cython.final
cdef class MaxwellWriter(RowsWriter):
    cdef RowWriter row
    cdef tuple heads  # by `Action`: the message up to what depends on the row
    cdef Template origin  # members about the change's origin
    cdef bytes data  # what precedes the row
    cdef tuple key_columns, key_parts  # the parts of the key before, between and after the columns' values
    cdef object key_of  # returns the key of a row of a table without a primary key
    cdef bint marks_commit, numbers_rows, nulls, repeats_key
    cdef Output key, head, position, key_values

    def __init__(
        self, RowWriter row not None, tuple heads not None, Template origin not None, bytes data not None,
        tuple key_columns not None, tuple key_parts not None, key_of, *, bint marks_commit, bint numbers_rows,
        bint nulls, bint repeats_key
    ):
        require_actions(heads)
        if key_of is None and len(key_parts) != len(key_columns) + 1:
            raise ValueError("there must be a part of the key before, between and after its columns")
        for column in key_columns:
            row.require_column(column)
        self.row, self.heads, self.origin, self.data = row, heads, origin, data
        self.key_columns, self.key_parts, self.key_of = key_columns, key_parts, key_of
        self.marks_commit, self.numbers_rows = marks_commit, numbers_rows
        self.nulls, self.repeats_key = nulls, repeats_key

    def __dealloc__(self):
        PyMem_Free(self.key.data)
        PyMem_Free(self.head.data)
        PyMem_Free(self.position.data)
        PyMem_Free(self.key_values.data)

    cdef int trim(self) except -1:
        return clear(&self.row.out)

    cdef bint write(self, const Transaction* transaction, const Rows* rows) except -1:
        cdef Cursor images = images_of(rows)
        cdef int64_t number
        read_array(&images)
        self.begin(rows)
        self.head.size = self.position.size = 0
        (<Template?> self.heads[<int> rows.action]).append_to(&self.head, transaction, rows)
        self.origin.append_to(&self.position, transaction, rows)
        for number in range(rows.count):
            if not self.choose(rows):
                return False
            self.row.load(&images)
            if rows.action == UPDATE:
                self.row.load_other(&images)
                self.row.swap()  # the row is the one after the update
            self.write_key(transaction.ordinal, self.counter.written + number)
            self.write_message(rows, self.counter.written + number)
            if not self.pack(transaction, written(&self.key), written(&self.row.out), rows.first + number):
                return False
        return True

    cdef int write_message(self, const Rows* rows, int64_t ordinal) except -1:
        cdef Output* out = &self.row.out
        cdef size_t size
        clear(out)
        append(out, self.head.data, self.head.size)
        if self.marks_commit and ordinal == self.counter.all - 1:
            append(out, b',"commit":true', 14)
        elif self.numbers_rows:
            append(out, b',"xoffset":', 11)
            end_at(out, put_integer(ordinal, room(out, 20)))
        append(out, self.position.data, self.position.size)
        if self.repeats_key:
            append(out, b',"primary_key":[', 16)
            append(out, self.key_values.data, self.key_values.size)
            append(out, b"]", 1)
        append_bytes(out, self.data)
        self.row.append_object(False, self.nulls)
        if rows.action == UPDATE:
            size = out.size
            append(out, b',"old":', 7)
            self.row.swap()
            if not self.row.append_object(True, self.nulls):
                out.size = size
        return append(out, b"}", 1)

    cdef int write_key(self, int64_t transaction, int64_t ordinal) except -1:
        """Write the key, and the values of its columns, separated by commas."""
        cdef Output* out = &self.row.out
        cdef Py_ssize_t i
        self.key.size = self.key_values.size = 0
        if self.key_of is not None:
            return append_bytes(&self.key, self.key_of(transaction, ordinal))
        append_bytes(&self.key, <bytes> self.key_parts[0])
        for i in range(len(self.key_columns)):
            clear(out)
            self.row.append_member(self.key_columns[i], None, True)
            append(&self.key, out.data, out.size)
            append_bytes(&self.key, <bytes> self.key_parts[i + 1])
            if i:
                append(&self.key_values, b",", 1)
            append(&self.key_values, out.data, out.size)
        return 0
