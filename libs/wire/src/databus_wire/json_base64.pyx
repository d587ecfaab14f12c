"""Packed rows as JSON arrays of base64, without a Python object per value."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from databus_wire.base64 cimport base64_size, put_base64
from databus_wire.msgpack_rows cimport ABSENT_VALUE, Cursor, read_array, read_value, refuse
from libc.stdint cimport uint8_t
from libc.string cimport memcpy


def json_base64(rows not None):
    """See json_base64.pyi."""
    cdef Py_buffer view
    cdef Py_ssize_t size
    cdef char* out
    cdef bytes text
    PyObject_GetBuffer(rows, &view, PyBUF_SIMPLE)
    try:
        with nogil:
            size = measure(cursor_of(&view))
        text = PyBytes_FromStringAndSize(NULL, size)
        out = PyBytes_AS_STRING(text)
        with nogil:
            write_rows(cursor_of(&view), out)
    finally:
        PyBuffer_Release(&view)
    return text


cdef Cursor cursor_of(const Py_buffer* view) noexcept nogil:
    cdef Cursor cursor
    cursor.at = <const uint8_t*> view.buf
    cursor.end = cursor.at + view.len
    return cursor


cdef Py_ssize_t measure(Cursor cursor) except -1 nogil:
    """Check the rows, so that `write_rows` need not, and return the size of the JSON text. Raises MalformedRows."""
    cdef Py_ssize_t count = read_array(&cursor), values, size, length
    size = 2 + max(count - 1, 0)
    for _ in range(count):
        values = read_array(&cursor)
        size += 2 + max(values - 1, 0)
        for _ in range(values):
            length = read_value(&cursor)
            if length < 0:
                size += 5 if length == ABSENT_VALUE else 4
            else:
                size += 2 + base64_size(length)
            cursor.at += max(length, 0)
    if cursor.at != cursor.end:
        refuse(b"there are bytes after the last row")
    return size


cdef void write_rows(Cursor cursor, char* out) noexcept nogil:
    cdef Py_ssize_t count = read_array(&cursor), values, length, row, column
    out[0] = b"["
    out += 1
    for row in range(count):
        if row:
            out[0] = b","
            out += 1
        out[0] = b"["
        out += 1
        values = read_array(&cursor)
        for column in range(values):
            if column:
                out[0] = b","
                out += 1
            length = read_value(&cursor)
            if length == ABSENT_VALUE:
                memcpy(out, b"false", 5)
                out += 5
            elif length < 0:
                memcpy(out, b"null", 4)
                out += 4
            else:
                out[0] = b'"'
                out = put_base64(cursor.at, length, out + 1)
                out[0] = b'"'
                out += 1
                cursor.at += length
        out[0] = b"]"
        out += 1
    out[0] = b"]"
