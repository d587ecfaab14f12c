# cython: language_level=3, boundscheck=False, wraparound=False
"""Rows as JSON objects: what message formats of one object a row spend most of their time with."""

from cython cimport final
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_Check, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.list cimport PyList_GET_ITEM
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.ref cimport PyObject
from cpython.unicode cimport PyUnicode_AsUTF8AndSize, PyUnicode_Check
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, memcpy, strchr, strncmp

from databus_binlog.errors import CorruptEvent

include "base64.pxi"
include "packed.pxi"
include "json_cells.pxi"
include "json_text.pxi"
include "json_compact.pxi"
include "json_usual.pxi"

cdef enum Kind:
    AS_IT_IS
    IN_QUOTES
    UTF8
    CHARACTERS
    BYTES
    UNSCALED  # from here on they are only for usual texts
    DAYS_OF
    MILLISECONDS_OF
    MICROSECONDS_OF
    MICROSECONDS_OF_TIME
    IN_ZONE
    DOCUMENT
    CALLED
    USUAL = 16  # with one of the others: that is for usual texts, all else is converted

RAW, PLAIN, TEXT, LATIN_1, BASE64 = AS_IT_IS, IN_QUOTES, UTF8, CHARACTERS, BYTES
DECIMAL, DAYS, MILLISECONDS, MICROSECONDS = UNSCALED, DAYS_OF, MILLISECONDS_OF, MICROSECONDS_OF
TIME, ZONED, JSON = MICROSECONDS_OF_TIME, IN_ZONE, DOCUMENT

cdef enum:
    KEPT = 64 << 10  # bytes of memory that are kept for the next rows: there is a writer for each table


@final
cdef class RowWriter:
    cdef tuple _members, _converts
    cdef Py_ssize_t _width
    cdef uint8_t* _kinds
    cdef Cell* _cells  # of the row that is being written
    cdef char* _data
    cdef size_t _size, _capacity

    def __cinit__(self, names, converts):
        self._members = tuple([self._name(name) for name in names])
        converts = [convert if isinstance(convert, tuple) else (None, convert) for convert in converts]
        if len(self._members) != len(converts):
            raise ValueError("there must be as many conversions as names")
        self._converts = tuple([convert for _, convert in converts])
        self._width = len(converts)
        self._kinds = <uint8_t*> PyMem_Malloc(self._width + 1)
        self._cells = <Cell*> PyMem_Malloc((self._width + 1) * sizeof(Cell))
        if self._kinds == NULL or self._cells == NULL:
            raise MemoryError
        for place, (usual, convert) in enumerate(converts):
            if usual is not None:
                self._kinds[place] = usual | USUAL
            elif not isinstance(convert, int):
                self._kinds[place] = CALLED
            elif convert < UNSCALED:
                self._kinds[place] = convert
            else:
                raise ValueError("what is only for usual texts needs a conversion for others")

    def __dealloc__(self):
        PyMem_Free(self._data)
        PyMem_Free(self._cells)
        PyMem_Free(self._kinds)

    def row(self, list row not None, bint nulls=True, bytes head not None=b"", bytes tail not None=b""):
        read_row(row, self._cells, self._width)
        self._size = 0
        self._bytes(head)
        self._object(None, nulls)
        self._bytes(tail)
        return self._taken()

    def some(self, rows not None, tuple places not None, bytes head not None=b"", bytes tail not None=b""):
        cdef Py_ssize_t place
        cdef RowReader read = RowReader(rows)
        cdef list written = []
        for _ in range(read.count):
            read.next(self._cells, self._width)
            self._size = 0
            self._bytes(head)
            self._append(b"{", 1)
            for place in places:
                self._require_place(place)
                self._member(place, <bytes> self._members[place], True)
            self._close()
            self._bytes(tail)
            written.append(self._taken())
        return written

    def numbered(
        self, rows not None, numbers not None, bytes head not None, bytes joint, bytes middle not None, tails not None
    ):
        cdef int64_t number
        cdef RowReader read = RowReader(rows)
        cdef list written = []
        if read.count != len(numbers) * (1 if joint is None else 2):
            raise ValueError("there must be as many rows as numbers")
        if not isinstance(tails, bytes) and len(tails) != len(numbers):
            raise ValueError("there must be as many tails as numbers")
        for number in numbers:
            read.next(self._cells, self._width)
            self._size = 0
            self._bytes(head)
            self._object(None, True)
            if joint is not None:
                read.next(self._cells, self._width)
                self._bytes(joint)
                self._object(None, True)
            self._bytes(middle)
            self._size = put_integer(number, self._room(20)) - self._data
            self._bytes(<bytes> tails if isinstance(tails, bytes) else <bytes?> tails[len(written)])
            written.append(self._taken())
        return written

    def changed(self, list before not None, list after not None, bint nulls=True):
        read_row(before, self._cells, self._width)
        self._size = 0
        return self._taken() if self._object(after, nulls) else None

    def array(self, rows not None, others=None):
        cdef Py_ssize_t place
        cdef RowReader read = RowReader(rows)
        if others is not None and len(others) != read.count:
            raise ValueError("there must be as many other rows")
        self._size = 0
        self._append(b"[", 1)
        for place in range(read.count):
            if place:
                self._append(b",", 1)
            read.next(self._cells, self._width)
            self._object(None if others is None else <list?> others[place], True)
        self._append(b"]", 1)
        return self._taken()

    def values(self, tuple places not None, list row not None):
        cdef Py_ssize_t place
        cdef list values = []
        read_row(row, self._cells, self._width)
        for place in places:
            self._require_place(place)
            self._size = 0
            self._member(place, None, True)
            values.append(self._taken())
        return values

    cdef int _require_place(self, Py_ssize_t place) except -1:
        if not 0 <= place < self._width:
            raise IndexError("there is no such column")
        return 0

    cdef bytes _name(self, str name):
        cdef bytes text = name.encode()
        self._size = 0
        self._text(PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))
        self._append(b":", 1)
        return self._taken()

    cdef bint _object(self, list other, bint nulls) except -1:
        """Write the row's values, or only those that are not the other's; say whether there are any of these."""
        cdef Py_ssize_t place
        cdef bint some = other is None
        if other is not None:
            require_width(len(other), self._width)
        self._append(b"{", 1)
        for place in range(self._width):
            if other is None or not is_same(&self._cells[place], other[place]):
                some = True
                self._member(place, <bytes> self._members[place], nulls)
        self._close()
        return some

    cdef int _close(self) except -1:
        """End an object: in place of the comma behind its last member, if it has one."""
        if self._data[self._size - 1] == 0x2C:
            self._data[self._size - 1] = 0x7D
            return 0
        return self._append(b"}", 1)

    cdef int _member(self, Py_ssize_t place, bytes name, bint nulls) except -1:
        """Write a value, behind its name if it gets one and before a comma then."""
        cdef int kind = self._kinds[place]
        cdef const char* text = self._cells[place].text
        cdef Py_ssize_t size = self._cells[place].size
        cdef int64_t number = 0
        cdef object value
        if text != NULL and kind >= CALLED:
            value = bytes_of(&self._cells[place])
            text = PyBytes_AS_STRING(value)
            if kind == CALLED or not is_usual(kind & ~USUAL, value, &number):
                value, kind = self._converts[place](value), AS_IT_IS
                if value is None:
                    text = NULL
                elif PyUnicode_Check(value):
                    text, kind = PyUnicode_AsUTF8AndSize(value, &size), UTF8
                else:
                    text, size = PyBytes_AS_STRING(<bytes?> value), PyBytes_GET_SIZE(value)
            kind &= ~USUAL
        if text == NULL and not nulls:
            return 0
        if name is not None:
            self._bytes(name)
        if text == NULL:
            self._append(b"null", 4)
        elif UNSCALED <= kind < IN_ZONE:
            self._number(kind, number)
        else:
            self._value(kind, text, size)
        if name is not None:
            self._append(b",", 1)
        return 0

    cdef int _value(self, int kind, const char* text, Py_ssize_t size) except -1:
        cdef char* o
        if kind == UTF8:
            return self._text(text, size)
        if kind == AS_IT_IS:
            return self._append(text, size)
        self._append(b'"', 1)
        if kind == IN_QUOTES:
            self._append(text, size)
        elif kind == DOCUMENT:
            o = self._room(2 * size + 8)
            self._size = put_compact(<const uint8_t*> text, size, o) - self._data
        elif kind == IN_ZONE:
            self._append(text, 10)
            self._append(b"T", 1)
            self._append(text + 11, size - 11)
            self._append(b"Z", 1)
        elif kind == CHARACTERS:
            o = self._room(room_for(<const uint8_t*> text, size, character_sizes))
            self._size = put_characters(<const uint8_t*> text, size, o) - self._data
        else:
            o = self._room((size + 2) // 3 * 4)
            self._size = put_base64(<const uint8_t*> text, size, o) - self._data
        return self._append(b'"', 1)

    cdef int _number(self, int kind, int64_t number) except -1:
        cdef char* o = self._room(24)
        if kind == UNSCALED:
            o[0] = 0x22
            o = put_big_endian(number, o + 1)
            o[0] = 0x22
            o += 1
        else:
            o = put_integer(number // 1000 if kind == MILLISECONDS_OF else number, o)
        self._size = o - self._data
        return 0

    cdef int _text(self, const char* text, Py_ssize_t size) except -1:
        cdef const uint8_t* i = <const uint8_t*> text
        cdef Py_ssize_t place
        cdef uint8_t seen = 0, special = 0
        cdef char* o
        for place in range(size):  # without an exit, for the compiler to do many at once
            seen |= i[place]
            special |= (i[place] < 0x20) | (i[place] == 0x22) | (i[place] == 0x5C)
        if seen & 0x80 and not is_utf8(i, size):
            raise ValueError("text is not UTF-8")
        o = self._room((room_for(i, size, escaped_sizes) if special else size) + 2)
        o[0] = 0x22
        if special:
            o = put_escaped(i, size, o + 1)
        else:
            memcpy(o + 1, i, size)
            o += 1 + size
        o[0] = 0x22
        self._size = o + 1 - self._data
        return 0

    cdef inline int _bytes(self, bytes text) except -1:
        return self._append(PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))

    cdef inline int _append(self, const char* text, size_t size) except -1:
        memcpy(self._room(size), text, size)
        self._size += size
        return 0

    cdef inline char* _room(self, size_t size) except NULL:
        """Return where to write the next `size` bytes. Moves earlier pointers."""
        if self._data == NULL or self._size + size > self._capacity:
            self._grow(self._size + size)
        return self._data + self._size

    cdef int _grow(self, size_t size) except -1:
        cdef size_t capacity = max(<size_t> 4096, self._capacity)
        cdef char* data
        while capacity < size:
            capacity *= 2
        data = <char*> PyMem_Realloc(self._data, capacity)
        if data == NULL:
            raise MemoryError
        self._data, self._capacity = data, capacity
        return 0

    cdef bytes _taken(self):
        cdef bytes taken = PyBytes_FromStringAndSize(self._data, self._size)
        if self._capacity > KEPT:
            PyMem_Free(self._data)
            self._data, self._capacity = <char*> NULL, 0
        return taken


cdef bint is_usual(int kind, bytes value, int64_t* number) noexcept:
    """Tell whether a text is one that a kind is for; kinds that write a number are given it."""
    cdef const char* text = PyBytes_AS_STRING(value)
    cdef const char* end = text + PyBytes_GET_SIZE(value)
    if kind == UNSCALED:
        return read_unscaled(text, end, number)
    if kind == DAYS_OF:
        return end == text + 10 and read_day(text, number)
    if kind == MICROSECONDS_OF_TIME:
        return read_time(text, end, number)
    if kind == DOCUMENT:
        return is_usual_json(text, end) and is_utf8(<const uint8_t*> text, end - text)
    if kind == IN_ZONE:
        return text[0] != 0x30 and read_moment(text, end, number)
    if kind == MILLISECONDS_OF or kind == MICROSECONDS_OF:
        return read_moment(text, end, number)
    return is_short(value)
