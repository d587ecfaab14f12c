"""How the values of a column are stored in row images."""

from databus_binlog.byte_order cimport le
from databus_binlog.faults cimport Fault
from libc.stdint cimport uint8_t, uint32_t


cdef enum Kind:
    # values of a fixed size
    SIGNED
    UNSIGNED  # also ENUM and SET
    FLOAT
    DOUBLE
    DECIMAL
    BIT
    YEAR
    DATE
    TIME
    DATETIME
    TIMESTAMP
    # the layouts before MySQL 5.6, and MariaDB's with mysql56_temporal_format=OFF
    OLD_TIME
    OLD_DATETIME
    OLD_TIMESTAMP
    # values that follow their length
    BYTES  # copied as they are: UTF-8, VARBINARY, BLOB, GEOMETRY, VECTOR
    PADDED  # BINARY(n): the log drops trailing zero bytes
    SINGLE_BYTE_TEXT  # a character set with one byte per character
    MULTI_BYTE_TEXT  # any other character set except UTF-8
    JSON


cdef struct Column:
    Kind kind
    uint32_t size  # bytes of a value of a fixed size, or of the length before a value
    uint32_t detail  # fractional digits of a second; PADDED: the size to pad to
    uint8_t precision
    uint8_t scale
    bint compressed
    # SINGLE_BYTE_TEXT: const uint8_t*, charsets.packed_table; MULTI_BYTE_TEXT: PyObject*, a function from bytes to str
    const void* charset


cdef inline Fault read_length(const Column* column, const uint8_t** p, const uint8_t* end, size_t* size) noexcept nogil:
    """Read a value's length, and move `p` to the end of the value."""
    if <size_t> (end - p[0]) < column.size:
        return Fault.TRUNCATED
    size[0] = le(p[0], column.size)
    if <size_t> (end - p[0]) - column.size < size[0]:
        return Fault.TRUNCATED
    p[0] += column.size + size[0]
    return Fault.NONE
