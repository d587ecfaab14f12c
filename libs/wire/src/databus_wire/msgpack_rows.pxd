"""Reads packed rows: a msgpack array with an array for each row.

A value is `bin`; NULL is nil, and a column that is absent from the row image is false.
"""

from libc.stdint cimport uint8_t

cdef enum Head:  # the first byte of a value or an array
    NIL = 0xC0
    FALSE = 0xC2
    BIN8 = 0xC4
    BIN32 = 0xC6
    ARRAY16 = 0xDC
    ARRAY32 = 0xDD
    SMALL_ARRAY = 0x90  # the lower four bits are the number of elements


cdef enum:  # what `read_value` returns in place of a length
    NULL_VALUE = -1
    ABSENT_VALUE = -3


cdef struct Cursor:
    const uint8_t* at  # the next byte to read
    const uint8_t* end


cdef inline int refuse(const char* why) except -1 with gil:
    from databus_wire.errors import MalformedRows
    raise MalformedRows(why.decode())


cdef inline Py_ssize_t read_number(Cursor* cursor, int size) except -1 nogil:
    """Read a big-endian number of `size` bytes."""
    cdef Py_ssize_t value = 0
    if cursor.end - cursor.at < size:
        refuse(b"the rows are cut off")
    for _ in range(size):
        value = value << 8 | cursor.at[0]
        cursor.at += 1
    return value


cdef inline Py_ssize_t read_array(Cursor* cursor) except -1 nogil:
    """Read the header of an array; return how many elements follow."""
    cdef uint8_t head = read_number(cursor, 1)
    if head & 0xF0 == Head.SMALL_ARRAY:
        return head & 0x0F
    if head == Head.ARRAY16:
        return read_number(cursor, 2)
    if head == Head.ARRAY32:
        return read_number(cursor, 4)
    return refuse(b"rows must be arrays of arrays")


cdef inline Py_ssize_t read_value(Cursor* cursor) except -2 nogil:
    """Read the header of a value; return how many bytes of text follow, NULL_VALUE, or ABSENT_VALUE.

    Refuse text that is cut off.
    """
    cdef uint8_t head = read_number(cursor, 1)
    cdef Py_ssize_t length
    if head == Head.NIL:
        return NULL_VALUE
    if not Head.BIN8 <= head <= Head.BIN32:
        if head == Head.FALSE:
            return ABSENT_VALUE
        refuse(b"a value must be bytes or NULL, or absent")
    length = read_number(cursor, 1 << (head - Head.BIN8))
    if length > cursor.end - cursor.at:
        refuse(b"the rows are cut off")
    return length
