"""Writes JSON documents as JSON strings: the fast path, for documents of at most 64 levels without \\u escapes.

The functions `after_…` return the end of what they are named after, or NULL if it is not at `p`; white space may be
empty. A zero byte must follow the text.
"""

from databus_wire.json_strings cimport UTF8_ESCAPES, put_escape
from libc.stdint cimport uint8_t
from libc.string cimport strchr, strncmp

cdef enum:
    MAX_DEPTH = 64


cdef inline const char* after_space(const char* p) noexcept nogil:
    while p[0] == b" " or p[0] == b"\n" or p[0] == b"\r" or p[0] == b"\t":
        p += 1
    return p


cdef inline const char* after_digits(const char* p) noexcept nogil:
    """Return the end of one or more digits."""
    if not b"0" <= p[0] <= b"9":
        return NULL
    while b"0" <= p[0] <= b"9":
        p += 1
    return p


cdef inline const char* after_number(const char* p) noexcept nogil:
    if p[0] == b"-":
        p += 1
    p = p + 1 if p[0] == b"0" else after_digits(p)
    if p != NULL and p[0] == b".":
        p = after_digits(p + 1)
    if p != NULL and (p[0] == b"e" or p[0] == b"E"):
        p += 1
        if p[0] == b"+" or p[0] == b"-":
            p += 1
        p = after_digits(p)
    return p


cdef inline const char* after_string(const char* p) noexcept nogil:
    if p[0] != b'"':
        return NULL
    p += 1
    while p[0] != b'"':
        if 0 <= p[0] < 0x20:  # also the zero byte at the end of the document
            return NULL
        if p[0] == b"\\":
            p += 1
            if strchr(b'"\\/bfnrt', p[0]) == NULL or p[0] == 0:
                return NULL
        p += 1
    return p + 1


cdef inline const char* after_name(const char* p) noexcept nogil:
    """Return the end of a member's name and colon."""
    p = after_string(after_space(p))
    if p == NULL:
        return NULL
    p = after_space(p)
    return p + 1 if p[0] == b":" else NULL


cdef inline const char* after_scalar(const char* p) noexcept nogil:
    if p[0] == b'"':
        return after_string(p)
    if strncmp(p, b"true", 4) == 0 or strncmp(p, b"null", 4) == 0:
        return p + 4
    return p + 5 if strncmp(p, b"false", 5) == 0 else after_number(p)


cdef inline bint is_simple_document(const char* p, const char* end) noexcept nogil:
    """Return whether the text is a valid document that `put_document` can write; UTF-8 is not validated."""
    cdef char closings[MAX_DEPTH]  # the closing brackets of the enclosing objects and arrays
    cdef int depth = 0
    while True:
        p = after_space(p)
        if p[0] == b"{" or p[0] == b"[":
            if depth == MAX_DEPTH:
                return False
            closings[depth] = p[0] + 2  # in ASCII, `}` is `{` + 2, and `]` is `[` + 2
            depth += 1
            p = after_space(p + 1)
            if p[0] != closings[depth - 1]:
                if closings[depth - 1] == b"}":
                    p = after_name(p)
                    if p == NULL:
                        return False
                continue
        else:
            p = after_scalar(p)
            if p == NULL:
                return False
            p = after_space(p)
        while depth and p[0] == closings[depth - 1]:
            depth -= 1
            p = after_space(p + 1)
        if depth == 0:
            return p == end
        if p[0] != b",":
            return False
        p += 1
        if closings[depth - 1] == b"}":
            p = after_name(p)
            if p == NULL:
                return False


cdef inline char* put_document(const uint8_t* p, size_t size, char* o) noexcept nogil:
    """Write a simple document inside a JSON string, without white space between its tokens; return the end.

    `o` must have room for two bytes for each byte of the document, plus eight: `put_escape` always writes eight bytes.
    """
    cdef const uint8_t* end = p + size
    cdef char* after
    cdef bint in_string = False
    while p < end:
        after = put_escape(&UTF8_ESCAPES, p[0], o)
        if in_string or p[0] > b" ":
            o = after
        if p[0] == b'"':
            in_string = not in_string
        elif p[0] == b"\\":
            p += 1
            o = put_escape(&UTF8_ESCAPES, p[0], o)
        p += 1
    return o
