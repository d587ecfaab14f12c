"""Packed rows as columns in Arrow's layout, without a Python object per value."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from databus_wire.msgpack_rows cimport NULL_VALUE, Cursor, read_array, read_value, refuse
from libc.stdint cimport INT32_MAX, int32_t, uint8_t
from libc.string cimport memcpy, memset


cdef struct Column:
    Py_ssize_t size  # bytes of text
    Py_ssize_t nulls
    uint8_t* valid  # a bit for each row
    int32_t* ends  # where each value ends
    char* text  # where the next value begins
    char* start  # of the text


def columns(list batches not None, Py_ssize_t width):
    """See columns.pyi."""
    cdef Py_ssize_t count = 0, first = 0, i
    cdef Column* found = <Column*> PyMem_Calloc(max(width, 1), sizeof(Column))
    cdef Cursor cursor
    cdef bytes batch
    if found == NULL:
        raise MemoryError
    try:
        for batch in batches:
            cursor = cursor_of(batch)
            with nogil:
                count += measure(cursor, found, width)
        buffers = [allocate(&found[i], count) for i in range(width)]
        for batch in batches:
            cursor = cursor_of(batch)
            with nogil:
                first = fill(cursor, found, width, first)
        return count, buffers
    finally:
        PyMem_Free(found)


cdef Cursor cursor_of(bytes batch):
    cdef Cursor cursor
    cursor.at = <const uint8_t*> PyBytes_AS_STRING(batch)
    cursor.end = cursor.at + PyBytes_GET_SIZE(batch)
    return cursor


cdef Py_ssize_t measure(Cursor cursor, Column* found, Py_ssize_t width) except -1 nogil:
    """Check the rows, so that `fill` need not, and add up the sizes of the columns; return the number of rows."""
    cdef Py_ssize_t count = read_array(&cursor), length, i
    for _ in range(count):
        if read_array(&cursor) != width:
            refuse(b"a row has not as many values as its table has columns")
        for i in range(width):
            length = read_value(&cursor)
            if length >= 0:
                cursor.at += length
                found[i].size += length
                if found[i].size > INT32_MAX:
                    refuse(b"a column of these rows has more than 2 GiB")
            elif length == NULL_VALUE:
                found[i].nulls += 1
            else:
                refuse(b"a value is absent, and columns have no mark for that")
    if cursor.at != cursor.end:
        refuse(b"there are bytes after the last row")
    return count


cdef tuple allocate(Column* column, Py_ssize_t count):
    """Make the buffers of a column; the bits of all values are set."""
    # Not `b"\xff" * n`: for one byte, Python returns an object that is shared with others.
    cdef bytes valid = PyBytes_FromStringAndSize(NULL, (count + 7) // 8)
    cdef bytes ends = PyBytes_FromStringAndSize(NULL, (count + 1) * sizeof(int32_t))
    cdef bytes text = PyBytes_FromStringAndSize(NULL, column.size)
    column.valid = <uint8_t*> PyBytes_AS_STRING(valid)
    memset(column.valid, 0xFF, (count + 7) // 8)
    column.ends = <int32_t*> PyBytes_AS_STRING(ends)
    column.ends[0] = 0
    column.ends += 1
    column.start = column.text = PyBytes_AS_STRING(text)
    return valid, ends, text, column.nulls


cdef Py_ssize_t fill(Cursor cursor, Column* found, Py_ssize_t width, Py_ssize_t row) except -1 nogil:
    """Copy the values, the first row's to index `row`; return the index after the last row."""
    cdef Py_ssize_t last = row + read_array(&cursor), length, i
    cdef Column* column
    for row in range(row, last):
        read_array(&cursor)
        for i in range(width):
            column = &found[i]
            length = read_value(&cursor)
            if length >= 0:
                memcpy(column.text, cursor.at, length)
                column.text += length
                cursor.at += length
            else:
                column.valid[row >> 3] &= ~(1 << (row & 7))
            column.ends[row] = <int32_t> (column.text - column.start)
    return last
