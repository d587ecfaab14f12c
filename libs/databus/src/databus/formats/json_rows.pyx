# cython: language_level=3, boundscheck=False, wraparound=False
"""Rows as JSON objects, compiled: formats of one message a row spend most of their time with them."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from libc.string cimport memcmp, memcpy

cdef enum Kind:
    AS_IT_IS
    IN_QUOTES
    UTF8
    BYTES
    CALLED

RAW, PLAIN, TEXT, BASE64 = AS_IT_IS, IN_QUOTES, UTF8, BYTES

cdef enum:
    KEPT = 4 << 20  # bytes of memory that are kept for the next rows
    CONTROL = 5  # bytes more that a control character takes without a letter of its own

cdef const char* DIGITS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
cdef const char* HEX = b"0123456789abcdef"

#: what stands behind the backslash, and how many bytes more it takes: none for bytes that stand for themselves
cdef unsigned char letters[256]
cdef unsigned char more[256]
for _byte in range(256):
    letters[_byte] = b"u"[0]
    more[_byte] = CONTROL if _byte < 0x20 else 0
for _byte, _letter in zip(b'\b\f\n\r\t"\\', b'bfnrt"\\'):
    letters[_byte] = _letter
    more[_byte] = 1


cdef class RowWriter:
    cdef tuple _members, _converts
    cdef unsigned char* _kinds
    cdef char* _data
    cdef size_t _size, _capacity

    def __cinit__(self, names, converts):
        self._members = tuple([self._name(name) for name in names])
        self._converts = tuple(converts)
        if len(self._members) != len(self._converts):
            raise ValueError("there must be as many conversions as names")
        self._kinds = <unsigned char*> PyMem_Malloc(len(self._converts) + 1)
        if self._kinds == NULL:
            raise MemoryError
        for place, convert in enumerate(self._converts):
            self._kinds[place] = convert if isinstance(convert, int) else CALLED

    def __dealloc__(self):
        PyMem_Free(self._data)
        PyMem_Free(self._kinds)

    def row(self, list row not None, bint nulls=True, bytes head not None=b"", bytes tail not None=b""):
        cdef Py_ssize_t place
        cdef bint some = False
        self._require(row)
        self._size = 0
        self._bytes(head)
        self._append(b"{", 1)
        for place in range(len(row)):
            some |= self._member(place, row[place], nulls, some)
        self._append(b"}", 1)
        self._bytes(tail)
        return self._taken()

    def changed(self, list before not None, list after not None, bint nulls=True):
        cdef Py_ssize_t place
        cdef bint some = False, any_changed = False
        self._require(before)
        self._require(after)
        self._size = 0
        self._append(b"{", 1)
        for place in range(len(before)):
            if not same(before[place], after[place]):
                any_changed = True
                some |= self._member(place, before[place], nulls, some)
        self._append(b"}", 1)
        return self._taken() if any_changed else None

    def values(self, tuple places not None, list row not None):
        cdef Py_ssize_t place
        cdef list values = []
        self._require(row)
        for place in places:
            if not 0 <= place < len(row):
                raise IndexError("there is no such column")
            self._size = 0
            self._value(place, self._converted(place, row[place]))
            values.append(self._taken())
        return values

    cdef int _require(self, list row) except -1:
        if len(row) != len(self._members):
            raise ValueError("a row has another number of values than its table has columns")
        return 0

    cdef bytes _name(self, str name):
        self._size = 0
        self._text(name.encode())
        self._append(b":", 1)
        return self._taken()

    cdef int _member(self, Py_ssize_t place, object value, bint nulls, bint comma) except -1:
        """Write a name and its value; say whether they were."""
        value = self._converted(place, value)
        if value is None and not nulls:
            return False
        if comma:
            self._append(b",", 1)
        self._bytes(<bytes> self._members[place])
        self._value(place, value)
        return True

    cdef object _converted(self, Py_ssize_t place, object value):
        if value is not None and self._kinds[place] == CALLED:
            return self._converts[place](value)
        return value

    cdef int _value(self, Py_ssize_t place, object value) except -1:
        cdef bytes text
        if value is None:
            return self._append(b"null", 4)
        text = value
        if self._kinds[place] == UTF8:
            return self._text(text)
        if self._kinds[place] == BYTES:
            return self._base64(text)
        if self._kinds[place] == IN_QUOTES:
            self._append(b'"', 1)
            self._bytes(text)
            return self._append(b'"', 1)
        return self._bytes(text)

    cdef int _text(self, bytes text) except -1:
        cdef const unsigned char* i = <const unsigned char*> PyBytes_AS_STRING(text)
        cdef Py_ssize_t size = PyBytes_GET_SIZE(text), place
        cdef size_t grown = size
        cdef unsigned char seen = 0, special = 0
        cdef char* o
        for place in range(size):
            seen |= i[place]
            special |= (i[place] < 0x20) | (i[place] == 0x22) | (i[place] == 0x5C)
        if seen & 0x80 and not is_utf8(i, size):
            raise ValueError("text is not UTF-8")
        if special:
            for place in range(size):
                grown += more[i[place]]
        o = self._room(grown + 2)
        o[0] = 0x22
        if special:
            escape(i, size, o + 1)
        else:
            memcpy(o + 1, i, size)
        o[grown + 1] = 0x22
        self._size += grown + 2
        return 0

    cdef int _base64(self, bytes data) except -1:
        cdef const unsigned char* i = <const unsigned char*> PyBytes_AS_STRING(data)
        cdef Py_ssize_t left = PyBytes_GET_SIZE(data)
        cdef char* o = self._room((left + 2) // 3 * 4 + 2)
        cdef unsigned int bits
        o[0] = 0x22
        o += 1
        while left > 0:
            bits = i[0] << 16 | (i[1] << 8 if left > 1 else 0) | (i[2] if left > 2 else 0)
            o[0] = DIGITS[bits >> 18]
            o[1] = DIGITS[bits >> 12 & 63]
            o[2] = DIGITS[bits >> 6 & 63] if left > 1 else 0x3D
            o[3] = DIGITS[bits & 63] if left > 2 else 0x3D
            i += 3
            o += 4
            left -= 3
        o[0] = 0x22
        self._size = o + 1 - self._data
        return 0

    cdef int _bytes(self, bytes text) except -1:
        return self._append(PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))

    cdef int _append(self, const char* text, size_t size) except -1:
        memcpy(self._room(size), text, size)
        self._size += size
        return 0

    cdef char* _room(self, size_t size) except NULL:
        """Return where to write the next `size` bytes. Moves earlier pointers."""
        cdef size_t capacity
        cdef char* data
        if self._data == NULL or self._size + size > self._capacity:
            capacity = max(<size_t> 4096, self._capacity)
            while capacity < self._size + size:
                capacity *= 2
            data = <char*> PyMem_Realloc(self._data, capacity)
            if data == NULL:
                raise MemoryError
            self._data, self._capacity = data, capacity
        return self._data + self._size

    cdef bytes _taken(self):
        cdef bytes taken = PyBytes_FromStringAndSize(self._data, self._size)
        if self._capacity > KEPT:
            PyMem_Free(self._data)
            self._data, self._capacity = NULL, 0
        return taken


cdef bint same(object a, object b) except -1:
    cdef bytes left, right
    if a is None or b is None:
        return a is b
    left, right = a, b
    if PyBytes_GET_SIZE(left) != PyBytes_GET_SIZE(right):
        return False
    return memcmp(PyBytes_AS_STRING(left), PyBytes_AS_STRING(right), PyBytes_GET_SIZE(left)) == 0


cdef void escape(const unsigned char* i, Py_ssize_t size, char* o) noexcept:
    cdef Py_ssize_t place
    for place in range(size):
        if more[i[place]] == 0:
            o[0] = i[place]
            o += 1
            continue
        o[0] = 0x5C
        o[1] = letters[i[place]]
        o += 2
        if more[i[place]] == CONTROL:
            o[0] = o[1] = 0x30
            o[2] = HEX[i[place] >> 4]
            o[3] = HEX[i[place] & 15]
            o += 4


cdef bint is_utf8(const unsigned char* i, Py_ssize_t size) noexcept:
    """Tell whether text is well-formed (table 3-7 of the Unicode standard)."""
    cdef const unsigned char* end = i + size
    cdef unsigned char low, high
    cdef Py_ssize_t following
    while i < end:
        if i[0] < 0x80:
            i += 1
            continue
        low, high = 0x80, 0xBF
        if 0xC2 <= i[0] <= 0xDF:
            following = 1
        elif 0xE0 <= i[0] <= 0xEF:
            following = 2
            if i[0] == 0xE0:
                low = 0xA0
            elif i[0] == 0xED:
                high = 0x9F
        elif 0xF0 <= i[0] <= 0xF4:
            following = 3
            if i[0] == 0xF0:
                low = 0x90
            elif i[0] == 0xF4:
                high = 0x8F
        else:
            return False
        if end - i <= following or not low <= i[1] <= high:
            return False
        if following > 1 and i[2] & 0xC0 != 0x80:
            return False
        if following > 2 and i[3] & 0xC0 != 0x80:
            return False
        i += following + 1
    return True
