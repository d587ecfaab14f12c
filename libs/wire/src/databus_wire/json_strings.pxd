"""Writes text inside a JSON string.

The functions `put_…` write to `o`, where the caller has reserved room, and return the end of what they wrote.
"""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy

cdef extern from "json_strings.hpp" nogil:
    struct JsonEscapes:
        uint64_t text[256]
        uint8_t size[256]
    const JsonEscapes UTF8_ESCAPES, LATIN1_ESCAPES
    int copy_plain_of_eight(const uint8_t* p, char* o)

cdef enum:
    MAX_ESCAPE = 6  # bytes
    MIN_MEASURED = 4096  # bytes: smaller text is not measured, but gets room as if each byte needed an escape


cdef inline size_t escaped_room(const JsonEscapes* escapes, const uint8_t* p, size_t size) noexcept nogil:
    """Return how many bytes to reserve for text with its escapes, and eight more, because each step writes eight."""
    cdef size_t needed = 8, i
    if size < MIN_MEASURED:
        return size * MAX_ESCAPE + 8
    for i in range(size):
        needed += escapes.size[p[i]]
    return needed


cdef inline char* put_escape(const JsonEscapes* escapes, uint8_t byte, char* o) noexcept nogil:
    memcpy(o, &escapes.text[byte], 8)
    return o + escapes.size[byte]


cdef inline char* put_utf8(const uint8_t* p, size_t size, char* o) noexcept nogil:
    """Write UTF-8, with escapes."""
    cdef const uint8_t* end = p + size
    cdef int plain
    while p < end:
        if end - p >= 8:
            plain = copy_plain_of_eight(p, o)
            p += plain
            o += plain
            if plain == 8:
                continue
        o = put_escape(&UTF8_ESCAPES, p[0], o)
        p += 1
    return o


cdef inline char* put_latin1(const uint8_t* p, size_t size, char* o) noexcept nogil:
    """Write each byte as the character U+0000…U+00FF of its number."""
    cdef size_t i
    for i in range(size):
        o = put_escape(&LATIN1_ESCAPES, p[i], o)
    return o
