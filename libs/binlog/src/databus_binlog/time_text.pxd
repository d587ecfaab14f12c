"""Writes dates and times as the server's canonical text.

Each put_… writes into reserved room and returns the end of what it wrote.

The layouts are those of sql/field.cc and my_time.cc. `digits` is the number of fractional digits of a second, 0 to 6.
"""

from databus_binlog.byte_order cimport be, le
from databus_binlog.number_text cimport put_padded
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

cdef enum:
    DAY = 24 * 60 * 60  # seconds


cdef inline char* put_date(char* o, int year, int month, int day) noexcept nogil:
    o = put_padded(o, year, 4)
    o[0] = b"-"
    o = put_padded(o + 1, month, 2)
    o[0] = b"-"
    return put_padded(o + 1, day, 2)


cdef inline char* put_clock(char* o, int hour, int minute, int second) noexcept nogil:
    o = put_padded(o, hour, 3 if hour > 99 else 2)
    o[0] = b":"
    o = put_padded(o + 1, minute, 2)
    o[0] = b":"
    return put_padded(o + 1, second, 2)


cdef inline char* put_fraction(char* o, uint64_t fraction, int digits) noexcept nogil:
    """Write a point and a fraction of `digits` digits; it is stored with one more digit if `digits` is odd."""
    return put_exact_fraction(o, fraction // 10 if digits & 1 else fraction, digits)


cdef inline char* put_exact_fraction(char* o, uint64_t fraction, int digits) noexcept nogil:
    """Write a point and a fraction that is stored with `digits` digits."""
    if digits == 0:
        return o
    o[0] = b"."
    return put_padded(o + 1, fraction, digits)


cdef inline char* put_seconds(char* o, uint32_t seconds) noexcept nogil:
    """Write seconds since 1970 as a UTC timestamp; 0 is the zero date."""
    cdef int year = 0, month = 0, day = 0
    if seconds:
        civil_from_days(seconds // DAY, &year, &month, &day)
    o = put_date(o, year, month, day)
    o[0] = b" "
    seconds %= DAY
    return put_clock(o + 1, <int> (seconds // 3600), <int> (seconds // 60 % 60), <int> (seconds % 60))


cdef inline void civil_from_days(uint32_t days, int* year, int* month, int* day) noexcept nogil:
    """Convert days since 1970-01-01 to a Gregorian date.

    The years of the computation begin in March, so that a leap day is the last day of its year.
    """
    cdef uint32_t z = days + 719468, era = z // 146097, of_era = z - era * 146097
    cdef uint32_t years = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    cdef uint32_t of_year = of_era - (365 * years + years // 4 - years // 100)
    cdef uint32_t shifted = (5 * of_year + 2) // 153
    day[0] = of_year - (153 * shifted + 2) // 5 + 1
    month[0] = shifted + 3 if shifted < 10 else shifted - 9
    year[0] = years + era * 400 + (1 if month[0] <= 2 else 0)


# --- the layouts since MySQL 5.6 ------------------------------------------------------------------------------------

cdef inline char* put_date3(char* o, const uint8_t* p) noexcept nogil:
    cdef int value = <int> le(p, 3)
    return put_date(o, value >> 9, value >> 5 & 15, value & 31)


cdef inline char* put_packed_datetime(char* o, uint64_t value) noexcept nogil:
    """Write DATETIME, stored as a number of year * 13 + month (17 bits), day (5), hour (5), minute (6), second (6)."""
    cdef int months = <int> (value >> 22)
    o = put_date(o, months // 13, months % 13, value >> 17 & 31)
    o[0] = b" "
    return put_clock(o + 1, value >> 12 & 31, value >> 6 & 63, value & 63)


cdef inline char* put_datetime2(char* o, const uint8_t* p, int digits) noexcept nogil:
    o = put_packed_datetime(o, be(p, 5) & <uint64_t> 0x7FFFFFFFFF)
    return put_fraction(o, be(p + 5, (digits + 1) // 2), digits)


cdef inline char* put_time2(char* o, const uint8_t* p, int digits) noexcept nogil:
    """Write TIME, stored as a big-endian number of hour (10 bits), minute (6), second (6), fraction, plus an offset.

    The offset lets the stored bytes sort like the times. The sign applies to all fields.
    """
    cdef int fraction_bytes = (digits + 1) // 2, size = 3 + fraction_bytes
    cdef int64_t value = <int64_t> be(p, size) - (<int64_t> 1 << (8 * size - 1))
    cdef uint64_t clock
    if value < 0:
        o[0] = b"-"
        o += 1
        value = -value
    clock = <uint64_t> value >> (8 * fraction_bytes)
    o = put_clock(o, <int> (clock >> 12), clock >> 6 & 63, clock & 63)
    return put_fraction(o, value & ((<uint64_t> 1 << (8 * fraction_bytes)) - 1), digits)


cdef inline char* put_timestamp2(char* o, const uint8_t* p, int digits) noexcept nogil:
    o = put_seconds(o, <uint32_t> be(p, 4))
    return put_fraction(o, be(p + 4, (digits + 1) // 2), digits)


# --- the layouts before MySQL 5.6, and MariaDB's own with fractions (mysql56_temporal_format=OFF) -------------------
# `size` is the number of bytes of a value. A TIME or DATETIME with a fraction counts units of 10 ** -digits seconds.

cdef inline uint64_t power_of_ten(int digits) noexcept nogil:
    cdef uint64_t value = 1
    cdef int i
    for i in range(digits):
        value *= 10
    return value


cdef inline char* put_old_time(char* o, const uint8_t* p, int size, int digits) noexcept nogil:
    """Write TIME, stored as a little-endian decimal number hhmmss.

    With a fraction, it is stored as a big-endian number: the units since -839:00:00.
    """
    cdef uint64_t unit = power_of_ten(digits), clock, seconds
    cdef int64_t value
    if digits == 0:
        value = <int64_t> (le(p, size) << 40) >> 40
    else:
        value = <int64_t> be(p, size) - <int64_t> (3020400 * unit)
    if value < 0:
        o[0] = b"-"
        o += 1
        value = -value
    clock = <uint64_t> value
    if digits == 0:
        return put_clock(o, <int> (clock // 10000), clock // 100 % 100, clock % 100)
    seconds = clock // unit
    o = put_clock(o, <int> (seconds // 3600), seconds // 60 % 60, seconds % 60)
    return put_exact_fraction(o, clock % unit, digits)


cdef inline char* put_old_datetime(char* o, const uint8_t* p, int size, int digits) noexcept nogil:
    """Write DATETIME, stored as a little-endian decimal number YYYYMMDDhhmmss.

    With a fraction, it is stored as a big-endian number of units, for which a month has 32 days and a year 13 months.
    """
    cdef uint64_t value, clock, unit = power_of_ten(digits)
    if digits == 0:
        value = le(p, size)
        clock = value // 1000000
        value %= 1000000
        o = put_date(o, clock // 10000 % 10000, clock // 100 % 100, clock % 100)
        o[0] = b" "
        return put_clock(o + 1, value // 10000, value // 100 % 100, value % 100)
    value = be(p, size)
    clock = value // unit
    o = put_date(o, clock // (DAY * 32 * 13) % 10000, clock // (DAY * 32) % 13, clock // DAY % 32)
    o[0] = b" "
    o = put_clock(o + 1, clock // 3600 % 24, clock // 60 % 60, clock % 60)
    return put_exact_fraction(o, value % unit, digits)


cdef inline char* put_old_timestamp(char* o, const uint8_t* p, int digits) noexcept nogil:
    """Write TIMESTAMP, stored as little-endian seconds since 1970.

    With a fraction, the seconds and the fraction that follows them are big-endian.
    """
    o = put_seconds(o, <uint32_t> (be(p, 4) if digits else le(p, 4)))
    return put_exact_fraction(o, be(p + 4, (digits + 1) // 2), digits)
