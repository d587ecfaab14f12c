"""Reads the values of rows, row by row."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_Check, PyBytes_GET_SIZE
from cpython.list cimport PyList_GET_ITEM
from databus_wire.msgpack_rows cimport ABSENT_VALUE, read_array, read_value, refuse
from databus_wire.packed_rows cimport PackedRows
from libc.stdint cimport uint8_t


cdef class RowReader:
    def __cinit__(self, rows):
        if isinstance(rows, PackedRows):
            rows = (<PackedRows> rows).packed
        if PyObject_CheckBuffer(rows):
            PyObject_GetBuffer(rows, &self.view, PyBUF_SIMPLE)
            self.cursor.at = <const uint8_t*> self.view.buf
            self.cursor.end = self.cursor.at + self.view.len
            self.count = read_array(&self.cursor)
            self.require_end()
        else:
            self.lists = list(rows)
            self.count = len(self.lists)

    def __dealloc__(self):
        PyBuffer_Release(&self.view)

    cdef int next(self, Value* values, Py_ssize_t width) except -1:
        """Read the next row. Its values are valid while the reader exists and the row, if a list, is unchanged."""
        self.read += 1
        if self.lists is not None:
            return read_list(<list?> self.lists[self.read - 1], values, width)
        read_packed(&self.cursor, values, width)
        return self.require_end()

    cdef int require_end(self) except -1:
        """Raise MalformedRows if the last row was read and more bytes follow."""
        if self.read == self.count and self.cursor.at != self.cursor.end:
            refuse(b"there are bytes after the last row")
        return 0


cdef int read_packed(Cursor* cursor, Value* values, Py_ssize_t width) except -1:
    """Read the values of the next packed row. They are valid as long as the packed rows."""
    cdef Py_ssize_t size, i
    require_width(read_array(cursor), width)
    for i in range(width):
        size = read_value(cursor)
        values[i].text = NULL
        values[i].object = NULL
        if size >= 0:
            values[i].text, values[i].size = <const char*> cursor.at, size
            cursor.at += size
        elif size == ABSENT_VALUE:
            refuse(b"a value is absent, and JSON objects have no mark for that")
    return 0


cdef int read_list(list row, Value* values, Py_ssize_t width) except -1:
    """Read the values of a list. They are valid as long as they are in the list."""
    cdef Py_ssize_t i
    cdef PyObject* value
    require_width(len(row), width)
    for i in range(width):
        value = PyList_GET_ITEM(row, i)
        values[i].object = value
        values[i].text = NULL
        if <object> value is not None:
            if not PyBytes_Check(<object> value):
                raise TypeError("a value must be bytes or None")
            values[i].text, values[i].size = PyBytes_AS_STRING(<object> value), PyBytes_GET_SIZE(<object> value)
    return 0


cdef int require_width(Py_ssize_t count, Py_ssize_t width) except -1:
    if count != width:
        raise ValueError(f"a row has {count} values, but its table has {width} columns")
    return 0
