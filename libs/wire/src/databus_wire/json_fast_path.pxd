"""Fast paths for decimals, dates and times.

The functions `read_…` and `is_…` return False, or -1, for a text that is not on their fast path and has to be converted
in Python: for instance a zero date, a year before 1, malformed text. A zero byte must follow each text, because the
functions read up to the first byte that does not fit.
"""

from databus_wire.base64 cimport put_base64
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

cdef enum:
    SECOND_US = 1000000
    MAX_DIGITS = 18  # a number of so many digits is always below 2⁶³


cdef inline int read_digits(const char* text, int count) noexcept nogil:
    """Read a number of `count` digits; return -1 if one of the bytes is not a digit."""
    cdef int number = 0, i
    for i in range(count):
        if not b"0" <= text[i] <= b"9":
            return -1
        number = number * 10 + text[i] - c"0"
    return number


cdef inline bint read_day(const char* text, int64_t* days) noexcept nogil:
    """Read YYYY-MM-DD as days since 1970-01-01."""
    cdef int year, month, day, last
    year = read_digits(text, 4)
    if year < 1 or text[4] != b"-":
        return False
    month = read_digits(text + 5, 2)
    if not 1 <= month <= 12 or text[7] != b"-":
        return False
    day = read_digits(text + 8, 2)
    if month == 2:
        last = 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    else:
        last = 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31
    if not 1 <= day <= last:
        return False
    if month < 3:  # count years from March to February, so that a leap day is the last day
        year -= 1
        month += 12
    days[0] = year * 365 + year // 4 - year // 100 + year // 400 + (153 * (month - 3) + 2) // 5 + day - 719469
    return True


cdef inline bint read_clock(const char* text, const char* end, int64_t* microseconds) noexcept nogil:
    """Read MM:SS or MM:SS.F, with up to six digits of a fraction, as microseconds."""
    cdef int minutes, seconds, fraction = 0, digits
    minutes = read_digits(text, 2)
    if not 0 <= minutes <= 59 or text[2] != b":":
        return False
    seconds = read_digits(text + 3, 2)
    if not 0 <= seconds <= 59:
        return False
    text += 5
    if text != end:
        digits = end - text - 1
        if text[0] != b"." or not 1 <= digits <= 6:
            return False
        fraction = read_digits(text + 1, digits)
        if fraction < 0:
            return False
        for digits in range(digits, 6):
            fraction *= 10
    microseconds[0] = (minutes * 60 + seconds) * <int64_t> SECOND_US + fraction
    return True


cdef inline bint read_time(const char* text, const char* end, int64_t* microseconds) noexcept nogil:
    """Read a TIME, whose hours have two or three digits, as microseconds."""
    cdef bint negative = text[0] == b"-"
    cdef int digits, hours
    text += negative
    digits = 2 if end - text > 2 and text[2] == b":" else 3
    hours = read_digits(text, digits)
    if hours < 0 or text[digits] != b":" or not read_clock(text + digits + 1, end, microseconds):
        return False
    microseconds[0] += hours * <int64_t> 3600 * SECOND_US
    if negative:
        microseconds[0] = -microseconds[0]
    return True


cdef inline bint read_timestamp(const char* text, const char* end, int64_t* microseconds) noexcept nogil:
    """Read a DATETIME or TIMESTAMP as microseconds since 1970."""
    cdef int64_t days
    cdef int hours
    if not read_day(text, &days) or text[10] != b" ":
        return False
    hours = read_digits(text + 11, 2)
    if not 0 <= hours <= 23 or text[13] != b":" or not read_clock(text + 14, end, microseconds):
        return False
    microseconds[0] += (days * 24 + hours) * 3600 * SECOND_US
    return True


cdef inline bint read_unscaled(const char* text, const char* end, int64_t* number) noexcept nogil:
    """Read a decimal as an integer, as if it had no point."""
    cdef bint negative = text[0] == b"-", after_point = False
    cdef int digits = 0
    text += negative
    number[0] = 0
    while text < end:
        if text[0] == b"." and not after_point:
            after_point = True
        elif b"0" <= text[0] <= b"9" and digits < MAX_DIGITS:
            number[0] = number[0] * 10 + text[0] - c"0"
            digits += 1
        else:
            return False
        text += 1
    if negative:
        number[0] = -number[0]
    return digits > 0


cdef inline bint is_short_decimal(const char* text, const char* end) noexcept nogil:
    """Return whether a decimal has one to seven digits, a point, more digits, and an absolute value of at least 0.1."""
    cdef const char* point
    if text[0] == b"-":
        text += 1
    point = text
    while b"0" <= point[0] <= b"9":
        point += 1
    if not 1 <= point - text <= 7 or point[0] != b"." or point + 1 >= end:
        return False
    if text[0] == b"0" and point[1] == b"0":
        return False
    point += 1
    while b"0" <= point[0] <= b"9":
        point += 1
    return point == end


cdef inline char* put_integer(int64_t number, char* o) noexcept nogil:
    """Write an integer to `o`, which must have room for 20 bytes; return the end."""
    if number >= 0:
        return put_unsigned(number, o)
    o[0] = b"-"
    return put_unsigned(0 - <uint64_t> number, o + 1)


cdef inline char* put_unsigned(uint64_t number, char* o) noexcept nogil:
    """Write an unsigned integer to `o`, which must have room for 20 bytes; return the end."""
    cdef char digits[20]
    cdef char* first = digits + 20
    while True:
        first -= 1
        first[0] = <char> (c"0" + number % 10)
        number //= 10
        if number == 0:
            break
    memcpy(o, first, digits + 20 - first)
    return o + (digits + 20 - first)


cdef inline char* put_big_endian(int64_t number, char* o) noexcept nogil:
    """Write an integer's shortest big-endian two's complement, like Java's BigInteger, in base64; return the end."""
    cdef uint8_t octets[8]
    cdef int i, skipped = 0
    for i in range(8):
        octets[i] = <uint64_t> number >> (56 - 8 * i)
    while skipped < 7 and octets[skipped] == (0xFF if number < 0 else 0) and (octets[skipped + 1] >> 7) == (number < 0):
        skipped += 1
    return put_base64(octets + skipped, 8 - skipped, o)
