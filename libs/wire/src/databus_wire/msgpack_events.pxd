"""Reads and writes the fields of events in msgpack, in the shortest form, as msgspec writes them.

The functions `read_…` move the cursor behind what they read, and raise MalformedEvents for anything else. The functions
`put_…` write into reserved room, and return the end of what they wrote.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from databus_wire.msgpack_rows cimport Cursor
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcmp, memcpy

cdef enum EventHead:  # the first byte of a field
    NIL_FIELD = 0xC0
    FALSE_FIELD = 0xC2
    TRUE_FIELD = 0xC3
    BIN8_FIELD = 0xC4
    BIN16_FIELD = 0xC5
    BIN32_FIELD = 0xC6
    FLOAT64_FIELD = 0xCB
    UINT8_FIELD = 0xCC
    UINT16_FIELD = 0xCD
    UINT32_FIELD = 0xCE
    UINT64_FIELD = 0xCF
    STR8_FIELD = 0xD9
    STR16_FIELD = 0xDA
    STR32_FIELD = 0xDB
    ARRAY16_FIELD = 0xDC
    ARRAY32_FIELD = 0xDD
    SMALL_MAP_FIELD = 0x80  # the lower four bits are the number of members
    SMALL_ARRAY_FIELD = 0x90  # the lower four bits are the number of elements
    SMALL_STR_FIELD = 0xA0  # the lower five bits are the number of bytes


cdef struct Text:  # of another's memory; a null pointer is nil
    const char* data
    Py_ssize_t size


cdef inline Text text_of(bytes value) noexcept:
    """Return the text of bytes, or nil of None. It is valid as long as they are."""
    return Text(NULL, 0) if value is None else Text(PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value))


cdef inline int refuse_events(const char* why) except -1 with gil:
    from databus_wire.errors import MalformedEvents
    raise MalformedEvents(why.decode())


cdef inline uint8_t next_byte(Cursor* cursor) except? 0xFF nogil:
    if cursor.at >= cursor.end:
        refuse_events(b"the events are cut off")
    cursor.at += 1
    return (cursor.at - 1)[0]


cdef inline uint64_t big_endian(Cursor* cursor, int size) except? 0xFFFFFFFF nogil:
    """Read a big-endian number of `size` bytes."""
    cdef uint64_t value = 0
    if cursor.end - cursor.at < size:
        refuse_events(b"the events are cut off")
    for _ in range(size):
        value = value << 8 | cursor.at[0]
        cursor.at += 1
    return value


cdef inline uint64_t read_uint(Cursor* cursor) except? 0xFFFFFFFF nogil:
    """Read an unsigned integer."""
    cdef uint8_t head = next_byte(cursor)
    if head < 0x80:
        return head
    if not EventHead.UINT8_FIELD <= head <= EventHead.UINT64_FIELD:
        refuse_events(b"a field must be an unsigned integer")
    return big_endian(cursor, 1 << (head - EventHead.UINT8_FIELD))


cdef inline bint read_bool(Cursor* cursor) except -1 nogil:
    cdef uint8_t head = next_byte(cursor)
    if head != EventHead.FALSE_FIELD and head != EventHead.TRUE_FIELD:
        refuse_events(b"a field must be true or false")
    return head == EventHead.TRUE_FIELD


cdef inline Py_ssize_t read_fields(Cursor* cursor) except -1 nogil:
    """Read the header of an array; return how many fields follow."""
    cdef uint8_t head = next_byte(cursor)
    if head & 0xF0 == EventHead.SMALL_ARRAY_FIELD:
        return head & 0x0F
    if head != EventHead.ARRAY16_FIELD and head != EventHead.ARRAY32_FIELD:
        refuse_events(b"an event must be an array")
    return <Py_ssize_t> big_endian(cursor, 2 if head == EventHead.ARRAY16_FIELD else 4)


cdef inline Text read_text(Cursor* cursor) except * nogil:
    """Read a string or a byte string, or nil. The text is valid as long as the memory that is read."""
    cdef uint8_t head = next_byte(cursor)
    cdef Text text = Text(NULL, 0)
    if head == EventHead.NIL_FIELD:
        return text
    if head & 0xE0 == EventHead.SMALL_STR_FIELD:
        text.size = head & 0x1F
    elif EventHead.STR8_FIELD <= head <= EventHead.STR32_FIELD:
        text.size = big_endian(cursor, 1 << (head - EventHead.STR8_FIELD))
    elif EventHead.BIN8_FIELD <= head <= EventHead.BIN32_FIELD:
        text.size = big_endian(cursor, 1 << (head - EventHead.BIN8_FIELD))
    else:
        refuse_events(b"a field must be a text or nil")
    if cursor.end - cursor.at < text.size:
        refuse_events(b"the events are cut off")
    text.data = <const char*> cursor.at
    cursor.at += text.size
    return text


cdef inline Text read_raw(Cursor* cursor) except * nogil:
    """Skip a field of any type, with all that is in it; return its bytes, header included."""
    cdef Text raw
    cdef Py_ssize_t left = 1
    cdef uint8_t head
    raw.data = <const char*> cursor.at
    while left:
        left -= 1
        head = next_byte(cursor)
        if head < 0x80 or head >= 0xE0 or head == EventHead.NIL_FIELD or head == 0xC2 or head == 0xC3:
            continue
        if head & 0xF0 == EventHead.SMALL_ARRAY_FIELD:
            left += head & 0x0F
        elif head & 0xF0 == EventHead.SMALL_MAP_FIELD:
            left += 2 * (head & 0x0F)
        elif head & 0xE0 == EventHead.SMALL_STR_FIELD:
            advance(cursor, head & 0x1F)
        elif EventHead.BIN8_FIELD <= head <= EventHead.BIN32_FIELD:
            advance(cursor, big_endian(cursor, 1 << (head - EventHead.BIN8_FIELD)))
        elif EventHead.STR8_FIELD <= head <= EventHead.STR32_FIELD:
            advance(cursor, big_endian(cursor, 1 << (head - EventHead.STR8_FIELD)))
        elif EventHead.UINT8_FIELD <= head <= EventHead.UINT64_FIELD:
            advance(cursor, 1 << (head - EventHead.UINT8_FIELD))
        elif 0xD0 <= head <= 0xD3:  # signed integers
            advance(cursor, 1 << (head - 0xD0))
        elif head == EventHead.ARRAY16_FIELD or head == EventHead.ARRAY32_FIELD:
            left += <Py_ssize_t> big_endian(cursor, 2 if head == EventHead.ARRAY16_FIELD else 4)
        elif head == 0xDE or head == 0xDF:  # maps
            left += 2 * <Py_ssize_t> big_endian(cursor, 2 if head == 0xDE else 4)
        elif head == EventHead.FLOAT64_FIELD:
            advance(cursor, 8)
        else:
            refuse_events(b"a field has a type that events do not have")
    raw.size = <const char*> cursor.at - raw.data
    return raw


cdef inline int advance(Cursor* cursor, uint64_t size) except -1 nogil:
    if <uint64_t> (cursor.end - cursor.at) < size:
        refuse_events(b"the events are cut off")
    cursor.at += size
    return 0


cdef inline bint is_text(Text text, const char* other, Py_ssize_t size) noexcept nogil:
    """Return whether a text, which may be nil, is another one."""
    return text.data != NULL and text.size == size and memcmp(text.data, other, size) == 0


# --- writing --------------------------------------------------------------------------------------------------------


cdef inline char* put_big_endian(char* o, uint64_t value, int size) noexcept nogil:
    cdef int i
    for i in range(size):
        o[i] = <char> (value >> 8 * (size - 1 - i))
    return o + size


cdef inline char* put_uint(char* o, uint64_t value) noexcept nogil:
    """Write an unsigned integer, at most nine bytes."""
    cdef int power = 0 if value < 1 << 8 else 1 if value < 1 << 16 else 2 if value < <uint64_t> 1 << 32 else 3
    if value < 0x80:
        o[0] = <char> value
        return o + 1
    o[0] = <char> (EventHead.UINT8_FIELD + power)
    return put_big_endian(o + 1, value, 1 << power)


cdef inline char* put_str(char* o, Text text) noexcept nogil:
    """Write a string, at most five bytes and the text."""
    if text.size < 32:
        o[0] = <char> (EventHead.SMALL_STR_FIELD | text.size)
        o += 1
    else:
        o = put_text_head(o, EventHead.STR8_FIELD, text.size)
    memcpy(o, text.data, text.size)
    return o + text.size


cdef inline char* put_bin(char* o, Text text) noexcept nogil:
    """Write a byte string or nil, at most five bytes and the text."""
    if text.data == NULL:
        o[0] = <char> EventHead.NIL_FIELD
        return o + 1
    o = put_text_head(o, EventHead.BIN8_FIELD, text.size)
    memcpy(o, text.data, text.size)
    return o + text.size


cdef inline char* put_text_head(char* o, int smallest, Py_ssize_t size) noexcept nogil:
    cdef int power = 0 if size < 1 << 8 else 1 if size < 1 << 16 else 2
    o[0] = <char> (smallest + power)
    return put_big_endian(o + 1, size, 1 << power)


cdef inline char* put_bool(char* o, bint value) noexcept nogil:
    o[0] = <char> (EventHead.TRUE_FIELD if value else EventHead.FALSE_FIELD)
    return o + 1
