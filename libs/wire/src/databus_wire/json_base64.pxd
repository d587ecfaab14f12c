"""Packed rows as JSON arrays of base64, for compiled code."""

from databus_wire.msgpack_rows cimport Cursor


cdef Py_ssize_t measure(Cursor cursor) except -1 nogil
cdef void write_rows(Cursor cursor, char* out) noexcept nogil
