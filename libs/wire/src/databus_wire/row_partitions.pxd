"""Chooses partitions of packed rows by their keys."""

from databus_wire.msgpack_rows cimport Cursor
from databus_wire.row_reader cimport Value


cdef class RowPartitions:
    cdef tuple key  # indexes of the key's columns
    cdef Py_ssize_t count  # number of partitions
    cdef Value* values  # of the row
    cdef Py_ssize_t width  # number of values that there is memory for

    cdef Py_ssize_t next(self, Cursor* rows) except -1
