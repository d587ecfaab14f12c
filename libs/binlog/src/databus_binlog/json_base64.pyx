# cython: language_level=3, boundscheck=False, wraparound=False
"""Packed rows as JSON arrays of base64, compiled: no Python object is made of a value."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport uint8_t
from libc.string cimport memcpy

from databus_binlog.errors import CorruptEvent

include "base64.pxi"
include "packed.pxi"


def json_base64(const unsigned char[::1] rows not None):
    """See json_base64.pyi."""
    cdef Cursor cursor
    cdef bytes text
    if not rows.shape[0]:
        raise CorruptEvent("the rows are cut off")
    cursor.at, cursor.end = &rows[0], &rows[0] + rows.shape[0]
    text = PyBytes_FromStringAndSize(NULL, measure(cursor))
    write(cursor, PyBytes_AS_STRING(text))
    return text


def count_rows(const unsigned char[::1] rows not None):
    """See json_base64.pyi."""
    cdef Cursor cursor
    if not rows.shape[0]:
        raise CorruptEvent("the rows are cut off")
    cursor.at, cursor.end = &rows[0], &rows[0] + rows.shape[0]
    return array(&cursor)


cdef Py_ssize_t measure(Cursor cursor) except -1:
    """Count the bytes of the text, and see that the rows are as they must be."""
    cdef Py_ssize_t count = array(&cursor), cells, size, length
    size = 2 + max(count - 1, 0)
    for _ in range(count):
        cells = array(&cursor)
        size += 2 + max(cells - 1, 0)
        for _ in range(cells):
            length = cell(&cursor)
            size += 4 if length < 0 else 2 + (length + 2) // 3 * 4
            cursor.at += max(length, 0)
    if cursor.at != cursor.end:
        raise CorruptEvent("there is something behind the rows")
    return size


cdef void write(Cursor cursor, char* out) noexcept:
    cdef Py_ssize_t count = array(&cursor), cells, length, row, column
    out[0] = b"["
    out += 1
    for row in range(count):
        if row:
            out[0] = b","
            out += 1
        out[0] = b"["
        out += 1
        cells = array(&cursor)
        for column in range(cells):
            if column:
                out[0] = b","
                out += 1
            length = cell(&cursor)
            if length < 0:
                memcpy(out, b"null", 4)
                out += 4
            else:
                out[0] = b'"'
                out = put_base64(<const uint8_t*> cursor.at, length, out + 1)
                out[0] = b'"'
                out += 1
                cursor.at += length
        out[0] = b"]"
        out += 1
    out[0] = b"]"
