# Packed rows: a msgpack array of arrays, of `bin` for each value and nil for NULL.

cdef struct Cursor:
    const unsigned char* at
    const unsigned char* end


cdef Py_ssize_t array(Cursor* cursor) except -1:
    """Read the head of a msgpack array: how many elements follow."""
    cdef unsigned char head = number(cursor, 1)
    if head & 0xF0 == 0x90:
        return head & 0x0F
    if head == 0xDC:
        return number(cursor, 2)
    if head == 0xDD:
        return number(cursor, 4)
    raise CorruptEvent("rows are arrays of arrays")


cdef Py_ssize_t cell(Cursor* cursor) except -2:
    """Read the head of a cell: how many bytes follow, all of them there; -1 for NULL."""
    cdef unsigned char head = number(cursor, 1)
    cdef Py_ssize_t length
    if head == 0xC0:
        return -1
    if not 0xC4 <= head <= 0xC6:
        raise CorruptEvent("a cell is bytes or NULL")
    length = number(cursor, 1 << (head - 0xC4))
    if length > cursor.end - cursor.at:
        raise CorruptEvent("the rows are cut off")
    return length


cdef inline Py_ssize_t number(Cursor* cursor, int size) except -1:
    """Read a big-endian number."""
    cdef Py_ssize_t value = 0
    if cursor.end - cursor.at < size:
        raise CorruptEvent("the rows are cut off")
    for _ in range(size):
        value = value << 8 | cursor.at[0]
        cursor.at += 1
    return value
