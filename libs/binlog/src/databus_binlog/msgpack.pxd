"""Writes msgpack: values and the headers of values.

Each function writes into reserved room and returns the end of what it wrote.
"""

from databus_binlog.byte_order cimport put_big16, put_big32, put_big64
from libc.stdint cimport uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef enum Head:  # the first byte of a value
    NIL = 0xC0
    FALSE = 0xC2
    TRUE = 0xC3
    BIN8 = 0xC4
    BIN16 = 0xC5
    BIN32 = 0xC6
    UINT16 = 0xCD
    UINT32 = 0xCE
    UINT64 = 0xCF
    STR16 = 0xDA
    ARRAY16 = 0xDC
    ARRAY32 = 0xDD
    SMALL_ARRAY = 0x90  # plus the number of elements, at most 15


cdef inline char* put_nil(char* o) noexcept nogil:
    o[0] = <char> Head.NIL
    return o + 1


cdef inline char* put_bool(char* o, bint value) noexcept nogil:
    o[0] = <char> (Head.TRUE if value else Head.FALSE)
    return o + 1


cdef inline char* put_uint(char* o, uint64_t value) noexcept nogil:
    """Write an unsigned integer, at most nine bytes."""
    if value < 128:
        o[0] = <char> value
        return o + 1
    if value < 65536:
        o[0] = <char> Head.UINT16
        return put_big16(o + 1, <uint16_t> value)
    if value < <uint64_t> 1 << 32:
        return put_uint32(o, <uint32_t> value)
    o[0] = <char> Head.UINT64
    return put_big64(o + 1, value)


cdef inline char* put_uint32(char* o, uint32_t value) noexcept nogil:
    """Write an unsigned integer as five bytes, whatever its value: room can be reserved before the value is known."""
    o[0] = <char> Head.UINT32
    return put_big32(o + 1, value)


cdef inline char* put_str(char* o, const char* text, size_t size) noexcept nogil:
    """Write a string of less than 64 KiB (a file name, a GTID, a fingerprint): three bytes and the text."""
    o[0] = <char> Head.STR16
    memcpy(put_big16(o + 1, <uint16_t> size), text, size)
    return o + 3 + size


cdef inline char* put_bin(char* o, size_t size) noexcept nogil:
    """Write the header of a byte string, at most five bytes."""
    if size < 256:
        o[0] = <char> Head.BIN8
        o[1] = <char> size
        return o + 2
    if size < 65536:
        o[0] = <char> Head.BIN16
        return put_big16(o + 1, <uint16_t> size)
    return put_bin32(o, <uint32_t> size)


cdef inline char* put_bin32(char* o, uint32_t size) noexcept nogil:
    """Write the header of a byte string as five bytes, whatever its size."""
    o[0] = <char> Head.BIN32
    return put_big32(o + 1, size)


cdef inline char* put_array(char* o, size_t count) noexcept nogil:
    """Write the header of an array of less than 65536 elements, at most three bytes."""
    if count < 16:
        o[0] = <char> (Head.SMALL_ARRAY | count)
        return o + 1
    o[0] = <char> Head.ARRAY16
    return put_big16(o + 1, <uint16_t> count)


cdef inline char* put_array32(char* o, uint32_t count) noexcept nogil:
    """Write the header of an array as five bytes, whatever the number of elements."""
    o[0] = <char> Head.ARRAY32
    return put_big32(o + 1, count)
