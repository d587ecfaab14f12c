"""Writes rows as JSON objects: compiled, because formats with an object for each row spend most of their time on it."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.unicode cimport PyUnicode_AsUTF8AndSize, PyUnicode_Check
from databus_wire.json_fast_path cimport put_integer
from databus_wire.json_values cimport Kind, append_number, append_text, append_value, is_fast
from databus_wire.output cimport append, append_bytes, end_at, room, take_text
from databus_wire.msgpack_rows cimport Cursor
from databus_wire.row_reader cimport RowReader, Value, bytes_of, is_same, read_list, read_packed
from libc.stdint cimport int64_t, uint8_t

RAW, PLAIN, TEXT, LATIN_1, BASE64 = Kind.RAW, Kind.PLAIN, Kind.TEXT, Kind.LATIN_1, Kind.BASE64
DECIMAL, DAYS, MILLISECONDS, MICROSECONDS = Kind.DECIMAL, Kind.DAYS, Kind.MILLISECONDS, Kind.MICROSECONDS
TIME, ZONED, JSON = Kind.TIME, Kind.ZONED, Kind.JSON


@cython.final
cdef class RowWriter:
    def __cinit__(self, names, converts):
        self.names = tuple([self.member_name(name) for name in names])
        converts = [convert if isinstance(convert, tuple) else (None, convert) for convert in converts]
        if len(self.names) != len(converts):
            raise ValueError("there must be as many conversions as names")
        self.converts = tuple([convert for _, convert in converts])
        self.width = len(converts)
        self.kinds = <uint8_t*> PyMem_Malloc(self.width + 1)
        self.current = <Value*> PyMem_Malloc((self.width + 1) * sizeof(Value))
        self.other = <Value*> PyMem_Malloc((self.width + 1) * sizeof(Value))
        if self.kinds == NULL or self.current == NULL or self.other == NULL:
            raise MemoryError
        for i, (fast, convert) in enumerate(converts):
            if fast is not None:
                self.kinds[i] = fast | Kind.FAST_PATH
            elif not isinstance(convert, int):
                self.kinds[i] = Kind.CONVERTED
            elif convert < Kind.DECIMAL:
                self.kinds[i] = convert
            else:
                raise ValueError("this kind needs a conversion for texts that are not on its fast path")

    def __dealloc__(self):
        PyMem_Free(self.out.data)
        PyMem_Free(self.current)
        PyMem_Free(self.other)
        PyMem_Free(self.kinds)

    def row(self, list row not None, bint nulls=True, bytes head not None=b"", bytes tail not None=b""):
        read_list(row, self.current, self.width)
        self.out.size = 0
        append_bytes(&self.out, head)
        self.append_object(False, nulls)
        append_bytes(&self.out, tail)
        return take_text(&self.out)

    def some_columns(self, rows not None, tuple columns not None, bytes head not None=b"", bytes tail not None=b""):
        cdef RowReader reader = RowReader(rows)
        cdef list written = []
        for _ in range(reader.count):
            reader.next(self.current, self.width)
            self.out.size = 0
            append_bytes(&self.out, head)
            self.append_columns(columns)
            append_bytes(&self.out, tail)
            written.append(take_text(&self.out))
        return written

    def numbered(
        self, rows not None, numbers not None, bytes head not None, bytes between, bytes middle not None,
        tails not None,
    ):
        cdef int64_t number
        cdef RowReader reader = RowReader(rows)
        cdef list written = []
        if reader.count != len(numbers) * (1 if between is None else 2):
            raise ValueError("there must be as many rows as numbers, or, with `between`, twice as many")
        if not isinstance(tails, bytes) and len(tails) != len(numbers):
            raise ValueError("there must be as many tails as numbers")
        for number in numbers:
            reader.next(self.current, self.width)
            self.out.size = 0
            append_bytes(&self.out, head)
            self.append_object(False, True)
            if between is not None:
                reader.next(self.current, self.width)
                append_bytes(&self.out, between)
                self.append_object(False, True)
            append_bytes(&self.out, middle)
            end_at(&self.out, put_integer(number, room(&self.out, 20)))
            append_bytes(&self.out, <bytes> tails if isinstance(tails, bytes) else <bytes?> tails[len(written)])
            written.append(take_text(&self.out))
        return written

    def changed(self, list before not None, list after not None, bint nulls=True):
        read_list(before, self.current, self.width)
        read_list(after, self.other, self.width)
        self.out.size = 0
        return take_text(&self.out) if self.append_object(True, nulls) else None

    def array(self, rows not None, others=None):
        cdef Py_ssize_t i
        cdef RowReader reader = RowReader(rows)
        if others is not None and len(others) != reader.count:
            raise ValueError("`others` must have as many rows as `rows`")
        self.out.size = 0
        append(&self.out, b"[", 1)
        for i in range(reader.count):
            if i:
                append(&self.out, b",", 1)
            reader.next(self.current, self.width)
            if others is not None:
                read_list(<list?> others[i], self.other, self.width)
            self.append_object(others is not None, True)
        append(&self.out, b"]", 1)
        return take_text(&self.out)

    def values(self, tuple columns not None, list row not None):
        cdef Py_ssize_t column
        cdef list values = []
        read_list(row, self.current, self.width)
        for column in columns:
            self.require_column(column)
            self.out.size = 0
            self.append_member(column, None, True)
            values.append(take_text(&self.out))
        return values

    cdef int require_column(self, Py_ssize_t column) except -1:
        if not 0 <= column < self.width:
            raise IndexError(f"there is no column with index {column}")
        return 0

    cdef bytes member_name(self, str name):
        cdef bytes text = name.encode()
        self.out.size = 0
        append_text(&self.out, <const uint8_t*> PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))
        append(&self.out, b":", 1)
        return take_text(&self.out)

    cdef int load(self, Cursor* rows) except -1:
        """Read the next packed row."""
        return read_packed(rows, self.current, self.width)

    cdef int load_other(self, Cursor* rows) except -1:
        """Read the packed row that the current row is compared with."""
        return read_packed(rows, self.other, self.width)

    cdef int swap(self) noexcept:
        """Make the current row the other one, and the other way round."""
        self.current, self.other = self.other, self.current
        return 0

    cdef list current_row(self):
        cdef Py_ssize_t i
        return [None if self.current[i].text == NULL else bytes_of(&self.current[i]) for i in range(self.width)]

    cdef bint differs(self, tuple columns) except -1:
        """Return whether both rows differ in one of these columns."""
        cdef Py_ssize_t column
        for column in columns:
            self.require_column(column)
            if not is_same(&self.current[column], &self.other[column]):
                return True
        return False

    cdef int append_columns(self, tuple columns) except -1:
        """Append an object of these columns."""
        cdef Py_ssize_t column
        append(&self.out, b"{", 1)
        for column in columns:
            self.require_column(column)
            self.append_member(column, <bytes> self.names[column], True)
        return self.end_object()

    cdef bint append_object(self, bint changed, bint nulls) except -1:
        """Append the row as an object; if `changed`, only the values that differ from the other row's.

        Return whether any value differs, or `changed` is false.
        """
        cdef Py_ssize_t column
        cdef bint differs = not changed
        append(&self.out, b"{", 1)
        for column in range(self.width):
            if not changed or not is_same(&self.current[column], &self.other[column]):
                differs = True
                self.append_member(column, <bytes> self.names[column], nulls)
        self.end_object()
        return differs

    cdef int end_object(self) except -1:
        """End an object: the brace replaces the comma after the last member, if the object has members."""
        if self.out.data[self.out.size - 1] == b",":
            self.out.data[self.out.size - 1] = b"}"
            return 0
        return append(&self.out, b"}", 1)

    cdef int append_member(self, Py_ssize_t column, bytes name, bint nulls) except -1:
        """Append a value, or, if `name` is not None, a member and a comma; nothing for null if `nulls` is false."""
        cdef int kind = self.kinds[column]
        cdef const char* text = self.current[column].text
        cdef Py_ssize_t size = self.current[column].size
        cdef int64_t number = 0
        cdef object value
        if text != NULL and kind >= Kind.CONVERTED:
            value = bytes_of(&self.current[column])
            text = PyBytes_AS_STRING(value)
            if kind == Kind.CONVERTED or not is_fast(kind & ~Kind.FAST_PATH, value, &number):
                value, kind = self.converts[column](value), Kind.RAW
                if value is None:
                    text = NULL
                elif PyUnicode_Check(value):
                    text, kind = PyUnicode_AsUTF8AndSize(value, &size), Kind.TEXT
                else:
                    text, size = PyBytes_AS_STRING(<bytes?> value), PyBytes_GET_SIZE(value)
            kind &= ~Kind.FAST_PATH
        if text == NULL and not nulls:
            return 0
        if name is not None:
            append_bytes(&self.out, name)
        if text == NULL:
            append(&self.out, b"null", 4)
        elif Kind.DECIMAL <= kind < Kind.ZONED:
            append_number(&self.out, kind, number)
        else:
            append_value(&self.out, kind, text, size)
        if name is not None:
            append(&self.out, b",", 1)
        return 0
