"""Packs the records of Kafka's record batches. The code is compiled, because it may run for each row (ADR 8)."""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from databus_wire.msgpack_events cimport Text, text_of
from libc.stdint cimport INT64_MAX, int64_t, uint64_t
from libc.string cimport memcpy

cdef enum:
    TRANSACTION_DIGITS = 16
    ROW_DIGITS = 10
    SEQUENCE_SIZE = 27  # the digits of both ordinals, and a hyphen

cdef int64_t TRANSACTIONS_LIMIT = 10**16
cdef int64_t ROWS_LIMIT = 10**10
cdef bytes NO_HEADERS = b"\x00"


cdef class RecordPacker:
    def __cinit__(self, *_, **__):
        self.data = bytearray()  # set here, too: a subclass might not call __init__
        self.sequence = bytearray(SEQUENCE_SIZE)

    def __init__(self, Py_ssize_t header, Py_ssize_t limit, str sequence=""):
        self.data = bytearray(header)
        self.capacity = self.used = header
        self.limit = limit
        self.sequence = bytearray(pack_headers([(sequence, sequence_text(0, 0))]))

    def append(self, int64_t time_ms, bytes key, bytes value, headers not None=()):
        """See kafka_records.pyi."""
        cdef bytes section = pack_headers(headers) if headers else NO_HEADERS
        return self.pack(time_ms, text_of(key), text_of(value), text_of(section), self.limit if self.count else INT64_MAX)

    def extend(self, int64_t time_ms, keys, values, Py_ssize_t first=0, int64_t transaction=0, rows=None):
        """See kafka_records.pyi."""
        cdef list key_list = keys if isinstance(keys, list) else list(keys)
        cdef list value_list = values if isinstance(values, list) else list(values)
        cdef Py_ssize_t before = self.count, count = len(value_list), row_count = 0, index, i
        cdef bint is_range = isinstance(rows, range)
        cdef int64_t start = rows.start if is_range else 0, step = rows.step if is_range else 0
        cdef Text key, value
        if first < 0 or len(key_list) != count:
            raise ValueError("there must be as many keys as values, and `first` must not be negative")
        if rows is not None:
            row_count = len(rows)
            if not row_count:
                raise ValueError("a sequence needs the ordinal of a row")
            self.set_transaction(transaction)
        for i in range(first, count):
            key, value = text_of(key_list[i]), text_of(value_list[i])
            if rows is None:
                if not self.pack(time_ms, key, value, text_of(NO_HEADERS), self.limit):
                    break
                continue
            index = i * row_count // count
            if not self.pack_row(time_ms, key, value, start + index * step if is_range else rows[index]):
                break
        return self.count - before

    def size(self):
        """See kafka_records.pyi."""
        return self.used

    def record_count(self):
        """See kafka_records.pyi."""
        return self.count

    def close(self):
        """See kafka_records.pyi."""
        self.is_closed = True

    def closed(self):
        """See kafka_records.pyi."""
        return self.is_closed

    def packed(self):
        """See kafka_records.pyi."""
        self.is_closed = True
        if self.capacity != self.used:
            PyByteArray_Resize(self.data, self.used)
            self.capacity = self.used
        return self.data

    cdef int set_mark(self, uint64_t attempt) except -1:
        """Mark the last record: `undo` removes those after it. `attempt` is for the caller."""
        self.attempt = attempt
        self.mark = Mark(self.used, self.count, self.first_ms, self.last_ms)
        return 0

    cdef int undo(self) except -1:
        self.used, self.count = self.mark.used, self.mark.count
        self.first_ms, self.last_ms = self.mark.first_ms, self.mark.last_ms
        return 0

    cdef int set_transaction(self, int64_t ordinal) except -1:
        """Set the transaction of the records that `pack_row` packs."""
        return put_transaction(ordinal, PyByteArray_AS_STRING(self.sequence) + len(self.sequence))

    cdef bint pack_row(self, int64_t time_ms, Text key, Text value, int64_t row) except -1:
        """Pack a record whose only header is its sequence; `row` is the ordinal of its first row."""
        cdef Text headers = Text(PyByteArray_AS_STRING(self.sequence), len(self.sequence))
        put_row(row, <char*> headers.data + headers.size)
        return self.pack(time_ms, key, value, headers, self.limit)

    cdef bint pack(self, int64_t time_ms, Text key, Text value, Text headers, Py_ssize_t limit) except -1:
        """Pack a record; `headers` is the number of its headers and the headers, as the record has them.

        Return False, and pack nothing, if the batch is closed, or would have more bytes than `limit`.
        """
        cdef int64_t delta_ms = time_ms - self.first_ms if self.count else 0
        cdef Py_ssize_t body = 1 + width(delta_ms) + width(self.count) + size_of(key) + size_of(value) + headers.size
        cdef Py_ssize_t size, capacity
        cdef char* out
        if self.is_closed:
            return False
        size = self.used + width(body) + body
        if size > limit:
            return False
        if size > self.capacity:
            capacity = max(size, min(2 * size, self.limit))
            PyByteArray_Resize(self.data, capacity)
            self.capacity = capacity
        out = put_varint(body, PyByteArray_AS_STRING(self.data) + self.used)
        out[0] = 0  # the record's attributes: Kafka defines none
        out = put_varint(delta_ms, out + 1)
        out = put_varint(self.count, out)
        out = put_field(key, out)
        out = put_field(value, out)
        memcpy(out, headers.data, headers.size)
        if not self.count:
            self.first_ms = self.last_ms = time_ms
        self.last_ms = max(self.last_ms, time_ms)
        self.used = size
        self.count += 1
        return True


def sequence_text(int64_t transaction, int64_t row):
    """See kafka_records.pyi."""
    cdef char text[SEQUENCE_SIZE]
    text[TRANSACTION_DIGITS] = b"-"
    put_transaction(transaction, text + SEQUENCE_SIZE)
    put_row(row, text + SEQUENCE_SIZE)
    return PyBytes_FromStringAndSize(text, SEQUENCE_SIZE)


cdef inline int put_transaction(int64_t ordinal, char* end) except -1:
    """Write a transaction's ordinal into the sequence that ends at `end`."""
    if not 0 <= ordinal < TRANSACTIONS_LIMIT:
        raise OverflowError(f"transaction ordinal {ordinal} does not fit a sequence")
    put_digits(ordinal, TRANSACTION_DIGITS, end - ROW_DIGITS - 1)
    return 0


cdef inline int put_row(int64_t ordinal, char* end) except -1:
    """Write a row's ordinal into the sequence that ends at `end`."""
    if not 0 <= ordinal < ROWS_LIMIT:
        raise OverflowError(f"row ordinal {ordinal} does not fit a sequence")
    put_digits(ordinal, ROW_DIGITS, end)
    return 0


cdef inline void put_digits(uint64_t number, int count, char* end) noexcept:
    """Write the last `count` decimal digits of a number before `end`."""
    for _ in range(count):
        end -= 1
        end[0] = <char> (48 + number % 10)
        number //= 10


cdef bytes pack_headers(headers):
    cdef list encoded = [(title.encode(), content) for title, content in headers]
    cdef Py_ssize_t size = width(len(encoded))
    cdef bytes section, name, content
    cdef char* out
    for name, content in encoded:
        size += size_of(text_of(name)) + size_of(text_of(content))
    section = PyBytes_FromStringAndSize(NULL, size)
    out = put_varint(len(encoded), PyBytes_AS_STRING(section))
    for name, content in encoded:
        out = put_field(text_of(name), out)
        out = put_field(text_of(content), out)
    return section


cdef inline uint64_t zigzag(int64_t number) noexcept:
    return (<uint64_t> number << 1) ^ <uint64_t> (number >> 63)


cdef inline Py_ssize_t width(int64_t number) noexcept:
    """Return the size in bytes of a number as a varint."""
    cdef uint64_t rest = zigzag(number) >> 7
    cdef Py_ssize_t count = 1
    while rest:
        rest >>= 7
        count += 1
    return count


cdef inline char* put_varint(int64_t number, char* out) noexcept:
    cdef uint64_t rest = zigzag(number)
    while rest > 127:
        out[0] = <char> (rest & 127 | 128)
        rest >>= 7
        out += 1
    out[0] = <char> rest
    return out + 1


cdef inline Py_ssize_t size_of(Text field) noexcept:
    return width(-1) if field.data == NULL else width(field.size) + field.size


cdef inline char* put_field(Text field, char* out) noexcept:
    if field.data == NULL:
        return put_varint(-1, out)
    out = put_varint(field.size, out)
    memcpy(out, field.data, field.size)
    return out + field.size
