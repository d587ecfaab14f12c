"""Packs the records of Kafka's record batches. The code is compiled, because it may run for each row (ADR 8)."""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy


cdef class RecordPacker:
    cdef bytearray data
    cdef Py_ssize_t capacity, limit, used, count
    cdef readonly int64_t first_ms, last_ms
    cdef bint is_closed

    def __cinit__(self, *_, **__):
        self.data = bytearray()  # set here, too: a subclass might not call __init__

    def __init__(self, Py_ssize_t header, Py_ssize_t limit):
        self.data = bytearray(header)
        self.capacity = self.used = header
        self.limit = limit

    def append(self, int64_t time_ms, bytes key, bytes value, headers not None=()):
        """See kafka_records.pyi."""
        return self.pack(time_ms, key, value, headers)

    def extend(self, int64_t time_ms, keys, values, Py_ssize_t first=0):
        """See kafka_records.pyi."""
        cdef list key_list = keys if isinstance(keys, list) else list(keys)
        cdef list value_list = values if isinstance(values, list) else list(values)
        cdef Py_ssize_t before = self.count, i
        if first < 0 or len(key_list) != len(value_list):
            raise ValueError("there must be as many keys as values, and `first` must not be negative")
        for i in range(first, len(value_list)):
            if not self.pack(time_ms, key_list[i], value_list[i], ()):
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

    cdef bint pack(self, int64_t time_ms, bytes key, bytes value, headers) except -1:
        cdef list encoded = [(title.encode(), content) for title, content in headers] if headers else []
        cdef int64_t delta_ms = time_ms - self.first_ms if self.count else 0
        cdef Py_ssize_t body = 1 + width(delta_ms) + width(self.count) + size_of(key) + size_of(value)
        cdef bytes header_name, header_value
        cdef Py_ssize_t size, capacity
        cdef char* out
        if self.is_closed:
            return False
        body += width(len(encoded))
        for header_name, header_value in encoded:
            body += size_of(header_name) + size_of(header_value)
        size = self.used + width(body) + body
        if size > self.limit and self.count:
            return False
        if size > self.capacity:
            capacity = max(size, min(2 * size, self.limit))
            PyByteArray_Resize(self.data, capacity)
            self.capacity = capacity
        out = put_varint(body, PyByteArray_AS_STRING(self.data) + self.used)
        out[0] = 0  # the record's attributes: Kafka defines none
        out = put_varint(delta_ms, out + 1)
        out = put_varint(self.count, out)
        out = put_bytes(key, out)
        out = put_bytes(value, out)
        out = put_varint(len(encoded), out)
        for header_name, header_value in encoded:
            out = put_bytes(header_name, out)
            out = put_bytes(header_value, out)
        if not self.count:
            self.first_ms = self.last_ms = time_ms
        self.last_ms = max(self.last_ms, time_ms)
        self.used = size
        self.count += 1
        return True


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


cdef inline Py_ssize_t size_of(bytes field) noexcept:
    return width(-1) if field is None else width(PyBytes_GET_SIZE(field)) + PyBytes_GET_SIZE(field)


cdef inline char* put_bytes(bytes field, char* out) noexcept:
    if field is None:
        return put_varint(-1, out)
    out = put_varint(PyBytes_GET_SIZE(field), out)
    memcpy(out, PyBytes_AS_STRING(field), PyBytes_GET_SIZE(field))
    return out + PyBytes_GET_SIZE(field)
