# cython: language_level=3, boundscheck=False, wraparound=False
"""Rows as JSON objects, compiled: of a message, strings are what takes the time."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_Check, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_AsUTF8AndSize, PyUnicode_Check, PyUnicode_DecodeUTF8
from libcpp.string cimport string

cdef enum:
    TEXT = 0x74  # t
    LATIN_1 = 0x6C  # l
    FLOAT = 0x66  # f
    CONVERTED = 0x63  # c

cdef const char* HEX = b"0123456789abcdef"


def objects(list members, bytes kinds, list converters, rows, others=None):
    """See row_json.pyi."""
    cdef list made = []
    cdef Py_ssize_t width = len(members)
    cdef string out
    cdef list row, other
    if len(kinds) != width or len(converters) != width:
        raise ValueError("members, kinds and converters are of one length")
    out.reserve(1024)
    for place, row in enumerate(rows):
        other = None if others is None else <list?>others[place]
        if len(row) != width or (other is not None and len(other) != width):
            raise ValueError("a row does not have as many cells as there are members")
        out.clear()
        put_row(out, members, kinds, converters, row, other)
        made.append(PyBytes_FromStringAndSize(out.data(), out.size()))
    return made


cdef int put_row(string& out, list members, const char* kinds, list converters, list row, list other) except -1:
    cdef Py_ssize_t place
    cdef bytes member
    out.push_back(b"{")
    for place in range(len(row)):
        cell = row[place]
        if other is not None and cell == other[place]:
            continue
        if out.size() > 1:
            out.push_back(b",")
        member = members[place]
        out.append(PyBytes_AS_STRING(member), PyBytes_GET_SIZE(member))
        put_cell(out, kinds[place], converters[place], cell)
    out.push_back(b"}")
    return 0


cdef int put_cell(string& out, char kind, convert, cell) except -1:
    cdef const char* text
    cdef Py_ssize_t size
    if cell is None:
        out.append(b"null")
        return 0
    if not PyBytes_Check(cell):
        raise TypeError("a cell is bytes or None")
    text, size = PyBytes_AS_STRING(cell), PyBytes_GET_SIZE(cell)
    if kind == CONVERTED or (kind == FLOAT and not is_short(text, size)):
        cell = convert(cell)
        if not PyUnicode_Check(cell):
            raise TypeError("a converter gives a string")
        text = PyUnicode_AsUTF8AndSize(cell, &size)
    if put_string(out, <const unsigned char*>text, size, kind == LATIN_1) and kind == TEXT:
        if not is_utf8(<const unsigned char*>text, size):
            PyUnicode_DecodeUTF8(text, size, NULL)  # raises UnicodeDecodeError
    return 0


cdef bint is_short(const char* text, Py_ssize_t size) noexcept:
    """Say whether a number has one to seven digits, a point and digits, and is not under 0.1."""
    cdef Py_ssize_t start = 1 if size and text[0] == b"-" else 0
    cdef Py_ssize_t point = start, place
    while point < size and b"0" <= text[point] <= b"9":
        point += 1
    if not 1 <= point - start <= 7 or point + 1 >= size or text[point] != b".":
        return False
    for place in range(point + 1, size):
        if not b"0" <= text[place] <= b"9":
            return False
    return text[start] != b"0" or text[point + 1] != b"0"


cdef bint put_string(string& out, const unsigned char* text, Py_ssize_t size, bint latin_1) noexcept:
    """Quote text; say whether there is more in it than ASCII."""
    cdef Py_ssize_t place
    cdef unsigned char c
    cdef bint special = False, beyond = False
    for place in range(size):  # without an exit, for the compiler to do many at once
        c = text[place]
        special |= (c < 0x20) | (c == 0x22) | (c == 0x5C)
        beyond |= c >= 0x80
    out.push_back(b'"')
    if special or (beyond and latin_1):
        put_escaped(out, text, size, latin_1)
    else:
        out.append(<const char*>text, size)
    out.push_back(b'"')
    return beyond


cdef void put_escaped(string& out, const unsigned char* text, Py_ssize_t size, bint latin_1) noexcept:
    cdef Py_ssize_t place, start = 0
    cdef unsigned char c
    for place in range(size):
        c = text[place]
        if c >= 0x20 and c != 0x22 and c != 0x5C and (c < 0x80 or not latin_1):
            continue
        out.append(<const char*>text + start, place - start)
        start = place + 1
        if c >= 0x80:
            out.push_back(<char>(0xC0 | c >> 6))
            out.push_back(<char>(0x80 | c & 0x3F))
        elif c == 0x22 or c == 0x5C:
            out.push_back(b"\\")
            out.push_back(<char>c)
        elif c == 0x0A:
            out.append(b"\\n")
        elif c == 0x0D:
            out.append(b"\\r")
        elif c == 0x09:
            out.append(b"\\t")
        else:
            out.append(b"\\u00")
            out.push_back(HEX[c >> 4])
            out.push_back(HEX[c & 15])
    out.append(<const char*>text + start, size - start)


cdef bint is_utf8(const unsigned char* text, Py_ssize_t size) noexcept:
    """Check against table 3-7 of the Unicode standard: no surrogates, no detours, nothing above U+10FFFF."""
    cdef Py_ssize_t place = 0, more, step
    cdef unsigned char c, low, high
    while place < size:
        c = text[place]
        place += 1
        if c < 0x80:
            continue
        low, high = 0x80, 0xBF
        if 0xC2 <= c <= 0xDF:
            more = 1
        elif 0xE0 <= c <= 0xEF:
            more = 2
            low, high = 0xA0 if c == 0xE0 else 0x80, 0x9F if c == 0xED else 0xBF
        elif 0xF0 <= c <= 0xF4:
            more = 3
            low, high = 0x90 if c == 0xF0 else 0x80, 0x8F if c == 0xF4 else 0xBF
        else:
            return False
        if size - place < more or not low <= text[place] <= high:
            return False
        for step in range(1, more):
            if text[place + step] & 0xC0 != 0x80:
                return False
        place += more
    return True
