"""Packed rows as a sequence of lists, which are made on first access."""

from collections.abc import Sequence

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from databus_wire.msgpack_rows cimport ABSENT_VALUE, Cursor, read_array, read_value, refuse
from libc.stdint cimport uint8_t


cdef class PackedRows:
    index = Sequence.index
    count = Sequence.count

    def __cinit__(self, packed not None):
        cdef Py_buffer view
        cdef Cursor cursor
        self.packed = packed
        PyObject_GetBuffer(packed, &view, PyBUF_SIMPLE)
        try:
            cursor.at = <const uint8_t*> view.buf
            cursor.end = cursor.at + view.len
            self.length = read_array(&cursor)
        finally:
            PyBuffer_Release(&view)

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return self.unpack()[index]

    def __iter__(self):
        return iter(self.unpack())

    def unpack(self):
        """See packed_rows.pyi."""
        cdef Py_buffer view
        if self.rows is None:
            PyObject_GetBuffer(self.packed, &view, PyBUF_SIMPLE)
            try:
                self.rows = unpacked(<const uint8_t*> view.buf, view.len)
            finally:
                PyBuffer_Release(&view)
        return self.rows


Sequence.register(PackedRows)


cdef list unpacked(const uint8_t* start, Py_ssize_t size):
    cdef Cursor cursor = Cursor(start, start + size)
    cdef list rows = [], row
    cdef Py_ssize_t length
    for _ in range(read_array(&cursor)):
        row = []
        for _ in range(read_array(&cursor)):
            length = read_value(&cursor)
            if length < 0:
                row.append(False if length == ABSENT_VALUE else None)
                continue
            row.append(PyBytes_FromStringAndSize(<const char*> cursor.at, length))
            cursor.at += length
        rows.append(row)
    if cursor.at != cursor.end:
        refuse(b"there are bytes after the last row")
    return rows
