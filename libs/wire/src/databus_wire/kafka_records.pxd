"""The packer of records, for compiled code that writes them."""

from databus_wire.msgpack_events cimport Text
from libc.stdint cimport int64_t, uint64_t


cdef struct Mark:
    Py_ssize_t used, count
    int64_t first_ms, last_ms


cdef class RecordPacker:
    cdef bytearray data
    cdef Py_ssize_t capacity, used, count
    cdef readonly Py_ssize_t limit
    cdef readonly int64_t first_ms, last_ms
    cdef bint is_closed
    cdef bytearray sequence  # the headers of a record whose only header is its sequence
    cdef Mark mark  # what `undo` returns to
    cdef uint64_t attempt  # the attempt to publish a transaction that has set the mark

    cdef int set_mark(self, uint64_t attempt) except -1
    cdef int undo(self) except -1
    cdef int set_transaction(self, int64_t ordinal) except -1
    cdef bint pack_row(self, int64_t time_ms, Text key, Text value, int64_t row) except -1
    cdef bint pack(self, int64_t time_ms, Text key, Text value, Text headers, Py_ssize_t limit) except -1
