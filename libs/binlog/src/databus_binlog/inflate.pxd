"""Inflates MariaDB's compressed columns (sql/field.cc, Field_longstr::compress) and events (sql/log_event.cc).

Compressed data begins with a byte 0x80 | flags | number of length bytes, and the uncompressed length, big-endian.
"""

from databus_binlog.buffer cimport Buffer
from databus_binlog.byte_order cimport be
from databus_binlog.faults cimport Fault
from libc.stdint cimport uint8_t

cdef Fault inflate_column(Buffer* out, const uint8_t* p, size_t size) noexcept nogil
cdef int inflate_event(Buffer* out, const uint8_t* p, size_t size) except -1
cdef bytes inflated_statement(const uint8_t* p, size_t size)


cdef inline size_t inflated_size(const uint8_t* p, size_t size) noexcept nogil:
    """Return the announced uncompressed length of a column or event; 0 if it is not compressed, or malformed."""
    if size == 0 or p[0] & 0xF0 != 0x80 or p[0] & 7 > 4 or size <= <size_t> (p[0] & 7):
        return 0
    return be(p + 1, p[0] & 7)
