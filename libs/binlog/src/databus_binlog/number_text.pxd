"""Writes numbers as the server's canonical text.

The put_ functions write into reserved room and return the end of what they wrote.

A DECIMAL is stored as in strings/decimal.c; the digits of a DOUBLE are laid out as by my_gcvt in strings/dtoa.cc.
"""

from databus_binlog.byte_order cimport be, le
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset


cdef extern from * nogil:
    """
    #include <charconv>
    #include <cstdint>
    static inline char* put_digits(char* o, uint64_t value) { return std::to_chars(o, o + 20, value).ptr; }
    static inline char* put_signed_digits(char* o, int64_t value) { return std::to_chars(o, o + 20, value).ptr; }
    static inline char* put_scientific(char* o, double value) {
        return std::to_chars(o, o + 32, value, std::chars_format::scientific).ptr; }
    static inline char* put_scientific_single(char* o, float value) {
        return std::to_chars(o, o + 32, value, std::chars_format::scientific).ptr; }
    """
    char* put_digits(char* o, uint64_t value)
    char* put_signed_digits(char* o, int64_t value)
    char* put_scientific(char* o, double value)
    char* put_scientific_single(char* o, float value)


cdef inline char* put_padded(char* o, uint64_t value, int width) noexcept nogil:
    """Write exactly `width` digits."""
    cdef int i
    for i in range(width - 1, -1, -1):
        o[i] = <char> (48 + value % 10)
        value //= 10
    return o + width


cdef inline char* put_unsigned(char* o, const uint8_t* p, int size) noexcept nogil:
    """Write the little-endian integer of `size` bytes at `p`."""
    return put_digits(o, le(p, size))


cdef inline char* put_signed(char* o, const uint8_t* p, int size) noexcept nogil:
    cdef int unused = 64 - 8 * size
    return put_signed_digits(o, <int64_t> (le(p, size) << unused) >> unused)


# --- floating point -------------------------------------------------------------------------------------------------

cdef inline char* put_float(char* o, double value, bint single) noexcept nogil:
    """Write the shortest digits that read back to the same bits, laid out as the server prints a DOUBLE.

    A number is written with an exponent (`1.5e-16`, `1e15`) if its absolute value is below 1e-15 (but not 0), or if it
    is whole and its absolute value is 1e15 or more.
    """
    cdef char[40] raw
    cdef char[24] digits
    cdef char* end = put_scientific_single(raw, <float> value) if single else put_scientific(raw, value)
    cdef char* p = raw
    cdef int count = 0, exponent = 0, sign = 1, point
    if p[0] == b"-":
        o[0] = b"-"
        o += 1
        p += 1
    while p < end and p[0] != b"e":
        if p[0] != b".":
            digits[count] = p[0]
            count += 1
        p += 1
    p += 1
    if p[0] == b"-":
        sign = -1
    p += 1
    while p < end:
        exponent = exponent * 10 + (p[0] - 48)
        p += 1
    exponent *= sign
    point = exponent + 1  # the number of digits before the decimal point
    if value == 0:
        o[0] = b"0"
        return o + 1
    if point < -14 or (point > 15 and point >= count):
        o[0] = digits[0]
        o += 1
        if count > 1:
            o[0] = b"."
            memcpy(o + 1, digits + 1, count - 1)
            o += count
        o[0] = b"e"
        return put_signed_digits(o + 1, exponent)
    if point <= 0:
        memcpy(o, b"0.", 2)
        memset(o + 2, 48, -point)
        memcpy(o + 2 - point, digits, count)
        return o + 2 - point + count
    if point >= count:
        memcpy(o, digits, count)
        memset(o + count, 48, point - count)
        return o + point
    memcpy(o, digits, point)
    o[point] = b"."
    memcpy(o + point + 1, digits + point, count - point)
    return o + count + 1


# --- DECIMAL: nine digits in four bytes, big-endian; a negative value is inverted; then the first bit is flipped ----

cdef inline int digit_bytes(int digits) noexcept nogil:
    """Return the size of a group of less than nine digits."""
    return (digits + 1) // 2


cdef inline int decimal_size(int precision, int scale) noexcept nogil:
    cdef int whole = precision - scale
    return whole // 9 * 4 + digit_bytes(whole % 9) + scale // 9 * 4 + digit_bytes(scale % 9)


cdef inline char* put_decimal(char* o, const uint8_t* p, int precision, int scale) noexcept nogil:
    """Write DECIMAL(precision, scale) with all digits of its scale."""
    cdef int whole = precision - scale, size = decimal_size(precision, scale), lead = whole % 9, i
    cdef uint8_t[40] raw
    cdef uint8_t invert = 0 if p[0] & 0x80 else 0xFF
    cdef uint8_t* q = raw
    cdef uint64_t group
    cdef char* first
    for i in range(size):
        raw[i] = p[i] ^ invert
    raw[0] ^= 0x80
    if invert:
        o[0] = b"-"
        o += 1
    first = o
    if lead:
        group = be(q, digit_bytes(lead))
        q += digit_bytes(lead)
        if group:
            o = put_digits(o, group)
    for i in range(whole // 9):
        group = be(q, 4)
        q += 4
        if o > first:
            o = put_padded(o, group, 9)
        elif group:
            o = put_digits(o, group)
    if o == first:
        o[0] = b"0"
        o += 1
    if scale:
        o[0] = b"."
        o += 1
        for i in range(scale // 9):
            o = put_padded(o, be(q, 4), 9)
            q += 4
        if scale % 9:
            o = put_padded(o, be(q, digit_bytes(scale % 9)), scale % 9)
    return o
