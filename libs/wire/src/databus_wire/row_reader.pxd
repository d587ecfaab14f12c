"""Reads the values of rows, row by row: from lists, or, without making Python objects, from packed rows."""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.ref cimport PyObject
from databus_wire.msgpack_rows cimport Cursor
from libc.string cimport memcmp


cdef struct Value:
    const char* text  # a null pointer if the value is NULL
    Py_ssize_t size  # not set if the value is NULL
    PyObject* object  # the list's element: None, or the bytes that own the text; a null pointer if the row is packed


@cython.final
cdef class RowReader:
    """Reads `count` rows. Raises MalformedRows for bytes that are not packed rows."""
    cdef list lists  # None if the rows are packed
    cdef Py_buffer view  # the packed rows
    cdef Cursor cursor
    cdef Py_ssize_t read  # number of rows that were read
    cdef Py_ssize_t count  # number of all rows

    cdef int next(self, Value* values, Py_ssize_t width) except -1
    cdef int require_end(self) except -1


cdef int read_packed(Cursor* cursor, Value* values, Py_ssize_t width) except -1
cdef int read_list(list row, Value* values, Py_ssize_t width) except -1
cdef int require_width(Py_ssize_t count, Py_ssize_t width) except -1


cdef inline bytes bytes_of(Value* value):
    """Return the text of a value (not NULL) as bytes, which are followed by a zero byte, unlike packed text."""
    return <bytes> value.object if value.object != NULL else PyBytes_FromStringAndSize(value.text, value.size)


cdef inline bint is_same(const Value* value, const Value* other) noexcept:
    if value.text == NULL or other.text == NULL:
        return value.text == NULL and other.text == NULL
    return value.size == other.size and memcmp(value.text, other.text, value.size) == 0
