"""The values of rows, row by row: from lists, or from packed rows, without Python objects."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.ref cimport PyObject
from databus_wire.msgpack_rows cimport Cursor
from libc.string cimport memcmp


cdef struct Value:
    const char* text  # NULL for a NULL
    Py_ssize_t size
    PyObject* object  # bytes that own the text; NULL for packed rows


@cython.final
cdef class RowReader:
    """Reads `count` rows. Raises MalformedRows for bytes that are not packed rows."""
    cdef list lists
    cdef Py_buffer view
    cdef Cursor cursor
    cdef Py_ssize_t read, count

    cdef int next(self, Value* values, Py_ssize_t width) except -1
    cdef int require_end(self) except -1


cdef int read_list(list row, Value* values, Py_ssize_t width) except -1
cdef int require_width(Py_ssize_t count, Py_ssize_t width) except -1


cdef inline bytes bytes_of(Value* value):
    """Return the text as bytes, which have a zero byte after them."""
    return <bytes> value.object if value.object != NULL else PyBytes_FromStringAndSize(value.text, value.size)


cdef inline bint is_same(Value* value, object other) except -1:
    if value.text == NULL or other is None:
        return value.text == NULL and other is None
    return value.size == PyBytes_GET_SIZE(<bytes?> other) and memcmp(
        value.text, PyBytes_AS_STRING(other), value.size
    ) == 0
