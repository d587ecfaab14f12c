"""Writes values of rows as JSON, by the kind of their column."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from databus_wire.base64 cimport base64_size, put_base64
from databus_wire.json_documents cimport is_simple_document, put_document
from databus_wire.json_fast_path cimport (
    is_short_decimal, put_big_endian, put_integer, read_day, read_time, read_timestamp, read_unscaled,
)
from databus_wire.json_strings cimport LATIN1_ESCAPES, UTF8_ESCAPES, escaped_room, put_latin1, put_utf8
from databus_wire.output cimport Output, append, end_at, room
from databus_wire.utf8 cimport is_utf8
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

cdef enum Kind:  # see json_rows.pyi
    RAW
    PLAIN
    TEXT
    LATIN_1
    BASE64
    DECIMAL  # the kinds from DECIMAL to JSON are used only with the flag FAST_PATH
    DAYS
    MILLISECONDS
    MICROSECONDS
    TIME
    ZONED
    JSON
    CONVERTED  # by a function only
    FAST_PATH = 16  # flag: the kind is only for texts on its fast path; a function converts all other texts


cdef inline bint is_fast(int kind, bytes value, int64_t* number) noexcept:
    """Return whether a text is on the fast path of a kind; set `number` for a kind from DECIMAL to TIME."""
    cdef const char* text = PyBytes_AS_STRING(value)
    cdef const char* end = text + PyBytes_GET_SIZE(value)
    if kind == Kind.DECIMAL:
        return read_unscaled(text, end, number)
    if kind == Kind.DAYS:
        return end == text + 10 and read_day(text, number)
    if kind == Kind.TIME:
        return read_time(text, end, number)
    if kind == Kind.JSON:
        return is_simple_document(text, end) and is_utf8(<const uint8_t*> text, end - text)
    if kind == Kind.ZONED:
        return text[0] != b"0" and read_timestamp(text, end, number)
    if kind == Kind.MILLISECONDS or kind == Kind.MICROSECONDS:
        return read_timestamp(text, end, number)
    return is_short_decimal(text, end)


cdef inline int append_number(Output* out, int kind, int64_t number) except -1:
    """Append the number of a text whose kind is from DECIMAL to TIME."""
    cdef char* o = room(out, 24)
    if kind == Kind.DECIMAL:
        o[0] = b'"'
        o = put_big_endian(number, o + 1)
        o[0] = b'"'
        return end_at(out, o + 1)
    return end_at(out, put_integer(number // 1000 if kind == Kind.MILLISECONDS else number, o))


cdef inline int append_value(Output* out, int kind, const char* text, Py_ssize_t size) except -1:
    """Append a text whose kind is not from DECIMAL to TIME."""
    cdef const uint8_t* p = <const uint8_t*> text
    if kind == Kind.TEXT:
        return append_text(out, p, size)
    if kind == Kind.RAW:
        return append(out, text, size)
    append(out, b'"', 1)
    if kind == Kind.PLAIN:
        append(out, text, size)
    elif kind == Kind.JSON:
        end_at(out, put_document(p, size, room(out, 2 * size + 8)))
    elif kind == Kind.ZONED:
        append(out, text, 10)
        append(out, b"T", 1)
        append(out, text + 11, size - 11)
        append(out, b"Z", 1)
    elif kind == Kind.LATIN_1:
        end_at(out, put_latin1(p, size, room(out, escaped_room(&LATIN1_ESCAPES, p, size))))
    else:
        end_at(out, put_base64(p, size, room(out, base64_size(size))))
    return append(out, b'"', 1)


cdef inline int append_text(Output* out, const uint8_t* p, Py_ssize_t size) except -1:
    """Append UTF-8 text as a string. Raises ValueError if the text is not well-formed."""
    cdef Py_ssize_t i
    cdef uint8_t seen = 0, special = 0
    cdef char* o
    for i in range(size):  # no early exit, so that the compiler vectorizes the loop
        seen |= p[i]
        special |= (p[i] < 0x20) | (p[i] == b'"') | (p[i] == b"\\")
    if seen & 0x80 and not is_utf8(p, size):
        raise ValueError("text is not UTF-8")
    o = room(out, (escaped_room(&UTF8_ESCAPES, p, size) if special else size) + 2)
    o[0] = b'"'
    if special:
        o = put_utf8(p, size, o + 1)
    else:
        memcpy(o + 1, p, size)
        o += 1 + size
    o[0] = b'"'
    return end_at(out, o + 1)
