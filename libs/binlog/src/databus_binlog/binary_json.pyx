"""Writes MySQL's binary JSON as text."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from databus_binlog.buffer cimport append, room
from databus_binlog.byte_order cimport le
from databus_binlog.faults cimport check
from databus_binlog.number_text cimport (
    decimal_size, put_decimal, put_digits, put_float, put_signed, put_unsigned,
)
from databus_binlog.time_text cimport put_clock, put_fraction, put_packed_datetime
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memchr, memcpy, memset

from databus_binlog.table_map import FieldType as T

cdef int TIMESTAMP = T.TIMESTAMP, DATE = T.DATE, TIME = T.TIME, DATETIME = T.DATETIME, NEWDECIMAL = T.NEWDECIMAL

cdef enum Kind:
    SMALL_OBJECT
    LARGE_OBJECT
    SMALL_ARRAY
    LARGE_ARRAY
    LITERAL
    INT16
    UINT16
    INT32
    UINT32
    INT64
    UINT64
    DOUBLE
    STRING
    OPAQUE = 15

cdef enum:
    MAX_DEPTH = 128  # levels; the server allows 100
    # Bytes of text per byte of a document. A malformed document can refer to the same value again and again; without a
    # limit its text could take all memory.
    MAX_TEXT_RATIO = 16


cdef Fault put_json(Buffer* out, const uint8_t* p, const uint8_t* end) noexcept nogil:
    """Append the text of a document. An empty document is a JSON null."""
    if p == end:
        return append(out, b"null", 4)
    return write_value(out, p[0], p + 1, end, 0, out.size + MAX_TEXT_RATIO * (end - p) + 1024)


cdef Fault write_value(
    Buffer* out, uint8_t kind, const uint8_t* p, const uint8_t* end, int depth, size_t limit
) noexcept nogil:
    """Append the text of a value of type `kind`. The document is malformed if `out` grows beyond `limit` bytes."""
    cdef char* o = room(out, 512)  # enough for every scalar except strings
    cdef char* first = o
    cdef double value
    cdef size_t size
    if o == NULL:
        return Fault.NO_MEMORY
    if kind <= LARGE_ARRAY:
        return write_container(out, kind, p, end, depth, limit)
    if kind == STRING:
        if not read_length(&p, end, &size):
            return Fault.BAD_JSON
        return write_string(out, p, size)
    if kind == OPAQUE:
        return write_opaque(out, p, end)
    if kind > DOUBLE or end - p < scalar_size(kind):
        return Fault.BAD_JSON
    if kind == LITERAL:
        if p[0] > 2:
            return Fault.BAD_JSON
        return append(out, b"null" if p[0] == 0 else b"true" if p[0] == 1 else b"false", 5 if p[0] == 2 else 4)
    if kind == DOUBLE:
        memcpy(&value, p, 8)
        o = put_float(o, value, False)
        if memchr(first, b".", o - first) == NULL and memchr(first, b"e", o - first) == NULL:
            memcpy(o, b".0", 2)
            o += 2
    elif kind & 1:  # the types of signed integers have odd numbers
        o = put_signed(o, p, scalar_size(kind))
    else:
        o = put_unsigned(o, p, scalar_size(kind))
    out.size += o - first
    return Fault.NONE


cdef inline int scalar_size(uint8_t kind) noexcept nogil:
    if kind == LITERAL:
        return 1
    return 2 if kind <= UINT16 else 4 if kind <= UINT32 else 8


cdef bint read_length(const uint8_t** p, const uint8_t* end, size_t* size) noexcept nogil:
    """Read a length with seven bits in each byte; return False if it is malformed, or if fewer bytes follow it."""
    cdef int shift = 0
    size[0] = 0
    while shift < 35 and p[0] < end:
        size[0] |= <size_t> (p[0][0] & 0x7F) << shift
        p[0] += 1
        if (p[0] - 1)[0] < 0x80:
            return <size_t> (end - p[0]) >= size[0]
        shift += 7
    return False


cdef Fault write_container(
    Buffer* out, uint8_t kind, const uint8_t* base, const uint8_t* end, int depth, size_t limit
) noexcept nogil:
    """Append an object or array.

    Its layout: count, size, an object's key entries (offset, length), value entries (type, offset or value), data.
    """
    cdef bint is_object = kind <= LARGE_OBJECT
    cdef int width = 4 if kind & 1 else 2
    cdef size_t available = end - base, count, size, i, at, key, length
    cdef const uint8_t* entry
    cdef const uint8_t* keys = base + 2 * width
    cdef const uint8_t* values
    cdef uint8_t value_kind
    cdef Fault fault
    if depth > MAX_DEPTH or available < <size_t> (2 * width):
        return Fault.BAD_JSON
    count = le(base, width)
    size = le(base + width, width)
    at = 2 * width + (count * (width + 2) if is_object else 0)
    values = base + at
    if size > available or at + count * (1 + width) > size:
        return Fault.BAD_JSON
    end = base + size
    fault = append(out, b"{" if is_object else b"[", 1)
    for i in range(count):
        if fault == Fault.NONE and out.size > limit:
            fault = Fault.BAD_JSON
        if fault == Fault.NONE and i:
            fault = append(out, b", ", 2)
        if fault == Fault.NONE and is_object:
            entry = keys + i * (width + 2)
            key = le(entry, width)
            length = le(entry + width, 2)
            if key + length > size:
                return Fault.BAD_JSON
            fault = write_string(out, base + key, length)
            if fault == Fault.NONE:
                fault = append(out, b": ", 2)
        if fault != Fault.NONE:
            return fault
        entry = values + i * (1 + width)
        value_kind = entry[0]
        if LITERAL <= value_kind <= UINT16 or (width == 4 and INT32 <= value_kind <= UINT32):
            fault = write_value(out, value_kind, entry + 1, end, depth + 1, limit)
        else:
            at = le(entry + 1, width)
            if at > size:
                return Fault.BAD_JSON
            fault = write_value(out, value_kind, base + at, end, depth + 1, limit)
    if fault == Fault.NONE:
        fault = append(out, b"}" if is_object else b"]", 1)
    return fault


cdef Fault write_string(Buffer* out, const uint8_t* p, size_t size) noexcept nogil:
    """Append a string in quotes; only quotes, backslashes and control characters are escaped."""
    cdef char* o = room(out, 6 * size + 2)
    cdef char* first = o
    cdef const char* hexadecimal = b"0123456789abcdef"
    cdef uint8_t c
    cdef char short
    cdef size_t i
    if o == NULL:
        return Fault.NO_MEMORY
    o[0] = b'"'
    o += 1
    for i in range(size):
        c = p[i]
        if c >= 32 and c != b'"' and c != b"\\":
            o[0] = <char> c
            o += 1
            continue
        if c == 8:
            short = b"b"
        elif c == 9:
            short = b"t"
        elif c == 10:
            short = b"n"
        elif c == 12:
            short = b"f"
        elif c == 13:
            short = b"r"
        elif c >= 32:
            short = <char> c
        else:
            memcpy(o, b"\\u00", 4)
            o[4] = hexadecimal[c >> 4]
            o[5] = hexadecimal[c & 15]
            o += 6
            continue
        o[0] = b"\\"
        o[1] = short
        o += 2
    o[0] = b'"'
    out.size += o + 1 - first
    return Fault.NONE


cdef Fault write_opaque(Buffer* out, const uint8_t* p, const uint8_t* end) noexcept nogil:
    """Append a value of an SQL type: a decimal as a number, a date or time as a string, any other as base64."""
    cdef uint8_t field  # FieldType
    cdef size_t size
    cdef char* o
    cdef char* first
    if p == end:
        return Fault.BAD_JSON
    field = p[0]
    p += 1
    if not read_length(&p, end, &size):
        return Fault.BAD_JSON
    o = first = room(out, 64 + size + size // 2)  # base64 with line breaks needs 1.37 times the size
    if o == NULL:
        return Fault.NO_MEMORY
    if field == NEWDECIMAL:
        if size < 2 or p[0] > 65 or p[1] > p[0] or <int> size < 2 + decimal_size(p[0], p[1]):
            return Fault.BAD_JSON
        o = put_decimal(o, p + 2, p[0], p[1])
    else:
        o[0] = b'"'
        if field == DATE or field == TIME or field == DATETIME or field == TIMESTAMP:
            if size != 8:
                return Fault.BAD_JSON
            o = put_temporal(o + 1, field, <int64_t> le(p, 8))
        else:
            memcpy(o + 1, b"base64:type", 11)
            o = put_digits(o + 12, field)
            o[0] = b":"
            o = put_base64(o + 1, p, size)
        o[0] = b'"'
        o += 1
    out.size += o - first
    return Fault.NONE


cdef char* put_temporal(char* o, uint8_t field, int64_t packed) noexcept nogil:
    cdef uint64_t whole, fraction
    if packed < 0:
        o[0] = b"-"
        o += 1
        packed = -packed
    whole = <uint64_t> packed >> 24
    fraction = packed & 0xFFFFFF
    if field == DATE:
        return put_packed_datetime(o, whole) - 9  # without the time of day
    if field == TIME:
        o = put_clock(o, <int> (whole >> 12 & 0x3FF), whole >> 6 & 63, whole & 63)
    else:
        o = put_packed_datetime(o, whole)
    return put_fraction(o, fraction, 6)


cdef char* put_base64(char* o, const uint8_t* p, size_t size) noexcept nogil:
    """Write base64 with an escaped line break between lines of 76 characters."""
    cdef const char* alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    cdef uint32_t group
    cdef size_t i, left
    for i in range(0, size, 3):
        if i and i % 57 == 0:
            memcpy(o, b"\\n", 2)
            o += 2
        left = size - i
        group = p[i] << 16 | (p[i + 1] << 8 if left > 1 else 0) | (p[i + 2] if left > 2 else 0)
        o[0] = alphabet[group >> 18]
        o[1] = alphabet[group >> 12 & 63]
        o[2] = alphabet[group >> 6 & 63] if left > 1 else b"="
        o[3] = alphabet[group & 63] if left > 2 else b"="
        o += 4
    return o


def json_text(bytes document not None):
    """Return the text of a binary JSON document, as bytes. Raises ValueError if it is malformed."""
    cdef Buffer out
    cdef const uint8_t* p = <const uint8_t*> PyBytes_AS_STRING(document)
    cdef Fault fault
    memset(&out, 0, sizeof(out))
    try:
        fault = put_json(&out, p, p + PyBytes_GET_SIZE(document))
        check(fault)
        if fault != Fault.NONE:
            raise ValueError("malformed binary JSON")
        return out.data[:out.size]
    finally:
        free(out.data)
