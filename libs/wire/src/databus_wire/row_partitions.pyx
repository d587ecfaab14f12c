"""Chooses partitions of packed rows by their keys: `partition_of_row` in databus_messages.routing.partitions."""

from cpython.mem cimport PyMem_Free, PyMem_Realloc
from databus_wire.msgpack_rows cimport read_array
from databus_wire.row_reader cimport read_packed
from libc.stdint cimport uint32_t, uint8_t

cdef extern from "crc32.hpp" nogil:
    uint32_t crc32_add(uint32_t crc, const uint8_t* data, size_t size)
    uint32_t CRC32_INITIAL


cdef class RowPartitions:
    def __init__(self, tuple key not None, Py_ssize_t count):
        self.key, self.count = key, count

    def __dealloc__(self):
        PyMem_Free(self.values)

    cdef Py_ssize_t next(self, Cursor* rows) except -1:
        """Read the next row; return the index of its partition."""
        cdef Cursor row = rows[0]
        cdef Py_ssize_t width = read_array(&row), column
        cdef uint32_t crc = CRC32_INITIAL
        cdef bint is_first = True
        cdef Value* values
        if width > self.width:
            values = <Value*> PyMem_Realloc(self.values, width * sizeof(Value))
            if values == NULL:
                raise MemoryError
            self.values, self.width = values, width
        read_packed(rows, self.values, width)
        for column in self.key:
            if column >= width:
                raise ValueError("a row lacks a column of its key")
            if not is_first:
                crc = crc32_add(crc, <const uint8_t*> b"\0", 1)
            is_first = False
            if self.values[column].text != NULL:
                crc = crc32_add(crc, <const uint8_t*> self.values[column].text, self.values[column].size)
        return <Py_ssize_t> (~crc & 0xFFFFFFFF) % self.count
