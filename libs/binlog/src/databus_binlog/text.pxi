# Values as text: the canonical form of each type, written into a buffer that has room for it.
# The layouts are those of sql/field.cc and mysys/decimal.c; each function returns the end of what it wrote.

cdef extern from * nogil:
    """
    #include <charconv>
    #include <cstdint>
    #include <cstring>
    static inline char* digits_of(char* out, uint64_t value) { return std::to_chars(out, out + 20, value).ptr; }
    static inline char* digits_of_signed(char* out, int64_t value) { return std::to_chars(out, out + 20, value).ptr; }
    static inline char* scientific(char* out, double value) {
        return std::to_chars(out, out + 32, value, std::chars_format::scientific).ptr; }
    static inline char* scientific_single(char* out, float value) {
        return std::to_chars(out, out + 32, value, std::chars_format::scientific).ptr; }
    """
    char* digits_of(char* out, uint64_t value)
    char* digits_of_signed(char* out, int64_t value)
    char* scientific(char* out, double value)
    char* scientific_single(char* out, float value)


cdef inline uint64_t le(const uint8_t* p, int size) noexcept nogil:
    cdef uint64_t value = 0
    cdef int i
    for i in range(size):
        value |= <uint64_t> p[i] << (8 * i)
    return value


cdef inline uint64_t be(const uint8_t* p, int size) noexcept nogil:
    cdef uint64_t value = 0
    cdef int i
    for i in range(size):
        value = value << 8 | p[i]
    return value


cdef inline char* padded(char* o, uint64_t value, int width) noexcept nogil:
    """Write exactly `width` digits."""
    cdef int i
    for i in range(width - 1, -1, -1):
        o[i] = <char> (48 + value % 10)
        value //= 10
    return o + width


cdef inline char* put_unsigned(char* o, const uint8_t* p, int size) noexcept nogil:
    return digits_of(o, le(p, size))


cdef inline char* put_signed(char* o, const uint8_t* p, int size) noexcept nogil:
    cdef int unused = 64 - 8 * size
    return digits_of_signed(o, <int64_t> (le(p, size) << unused) >> unused)


# --- floating point: the shortest digits that read back to the same bits, laid out as the server lays out a DOUBLE

cdef char* put_float(char* o, double value, bint single) noexcept nogil:
    """Plain digits for exponents from -15 to 14 and where there is a fraction, else `d.ddde±n` without plus sign.

    As my_gcvt in strings/dtoa.cc.
    """
    cdef char[40] raw
    cdef char[24] digits
    cdef char* end = scientific_single(raw, <float> value) if single else scientific(raw, value)
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
    point = exponent + 1  # how many digits stand before the point
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
        return digits_of_signed(o + 1, exponent)
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


# --- decimals: groups of nine digits in four bytes, big-endian, negative ones inverted, the sign bit flipped

cdef int[10] DIGIT_BYTES
DIGIT_BYTES[:] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4]


cdef int decimal_size(int precision, int scale) noexcept nogil:
    cdef int whole = precision - scale
    return whole // 9 * 4 + DIGIT_BYTES[whole % 9] + scale // 9 * 4 + DIGIT_BYTES[scale % 9]


cdef char* put_decimal(char* o, const uint8_t* p, int precision, int scale) noexcept nogil:
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
        group = be(q, DIGIT_BYTES[lead])
        q += DIGIT_BYTES[lead]
        if group:
            o = digits_of(o, group)
    for i in range(whole // 9):
        group = be(q, 4)
        q += 4
        if o > first:
            o = padded(o, group, 9)
        elif group:
            o = digits_of(o, group)
    if o == first:
        o[0] = b"0"
        o += 1
    if scale:
        o[0] = b"."
        o += 1
        for i in range(scale // 9):
            o = padded(o, be(q, 4), 9)
            q += 4
        if scale % 9:
            o = padded(o, be(q, DIGIT_BYTES[scale % 9]), scale % 9)
    return o


# --- dates and times

cdef inline char* put_date(char* o, int year, int month, int day) noexcept nogil:
    o = padded(o, year, 4)
    o[0] = b"-"
    o = padded(o + 1, month, 2)
    o[0] = b"-"
    return padded(o + 1, day, 2)


cdef inline char* put_clock(char* o, int hour, int minute, int second) noexcept nogil:
    o = padded(o, hour, 3 if hour > 99 else 2)
    o[0] = b":"
    o = padded(o + 1, minute, 2)
    o[0] = b":"
    return padded(o + 1, second, 2)


cdef inline char* put_fraction(char* o, uint64_t fraction, int digits) noexcept nogil:
    """Write a point and `digits` digits; the fraction is stored with an even number of digits."""
    if digits == 0:
        return o
    o[0] = b"."
    return padded(o + 1, fraction // 10 if digits & 1 else fraction, digits)


cdef char* put_date3(char* o, const uint8_t* p) noexcept nogil:
    cdef int value = <int> le(p, 3)
    return put_date(o, value >> 9, value >> 5 & 15, value & 31)


cdef char* put_packed_datetime(char* o, uint64_t value) noexcept nogil:
    """year * 13 + month : 17, day : 5, hour : 5, minute : 6, second : 6 bits."""
    cdef int months = <int> (value >> 22)
    o = put_date(o, months // 13, months % 13, value >> 17 & 31)
    o[0] = b" "
    return put_clock(o + 1, value >> 12 & 31, value >> 6 & 63, value & 63)


cdef char* put_datetime2(char* o, const uint8_t* p, int digits) noexcept nogil:
    o = put_packed_datetime(o, be(p, 5) & <uint64_t> 0x7FFFFFFFFF)
    return put_fraction(o, be(p + 5, (digits + 1) // 2), digits)


cdef char* put_time2(char* o, const uint8_t* p, int digits) noexcept nogil:
    """One big-endian number of seconds' fields and fraction, offset so that it sorts; negative as a whole."""
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


cdef char* put_timestamp2(char* o, const uint8_t* p, int digits) noexcept nogil:
    o = put_seconds(o, <uint32_t> be(p, 4))
    return put_fraction(o, be(p + 4, (digits + 1) // 2), digits)


cdef char* put_seconds(char* o, uint32_t seconds) noexcept nogil:
    """Seconds since 1970 in UTC; 0 is the zero date."""
    cdef int year = 0, month = 0, day = 0
    if seconds:
        civil_from_days(seconds // 86400, &year, &month, &day)
    o = put_date(o, year, month, day)
    o[0] = b" "
    seconds %= 86400
    return put_clock(o + 1, <int> (seconds // 3600), <int> (seconds // 60 % 60), <int> (seconds % 60))


# --- dates and times before MySQL 5.6, and MariaDB's own with fractions (mysql56_temporal_format=OFF): a whole number of
# --- fractions, big-endian, that sorts

cdef inline uint64_t power_of_ten(int digits) noexcept nogil:
    cdef uint64_t value = 1
    cdef int i
    for i in range(digits):
        value *= 10
    return value


cdef inline char* put_exact_fraction(char* o, uint64_t fraction, int digits) noexcept nogil:
    if digits == 0:
        return o
    o[0] = b"."
    return padded(o + 1, fraction, digits)


cdef char* put_old_time(char* o, const uint8_t* p, int digits) noexcept nogil:
    """Without a fraction hhmmss as a decimal number, else fractions of a second from -838:59:59.999…"""
    cdef uint64_t unit = power_of_ten(digits), clock, seconds
    cdef int64_t value
    if digits == 0:
        value = <int64_t> (le(p, 3) << 40) >> 40
    else:
        value = <int64_t> be(p, OLD_TIME_BYTES[digits]) - <int64_t> (3020400 * unit)
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


cdef enum:
    DAY = 24 * 60 * 60

cdef int[7] OLD_TIME_BYTES
OLD_TIME_BYTES[:] = [3, 4, 4, 5, 5, 5, 6]
cdef int[7] OLD_DATETIME_BYTES
OLD_DATETIME_BYTES[:] = [8, 6, 6, 7, 7, 7, 8]


cdef char* put_old_datetime(char* o, const uint8_t* p, int digits) noexcept nogil:
    """Without a fraction YYYYMMDDhhmmss as a decimal number, else months of 13, days of 32 and so on in one number."""
    cdef uint64_t value, clock, unit = power_of_ten(digits)
    if digits == 0:
        value = le(p, 8)
        clock = value // 1000000
        value %= 1000000
        o = put_date(o, clock // 10000 % 10000, clock // 100 % 100, clock % 100)
        o[0] = b" "
        return put_clock(o + 1, value // 10000, value // 100 % 100, value % 100)
    value = be(p, OLD_DATETIME_BYTES[digits])
    clock = value // unit
    o = put_date(o, clock // (DAY * 32 * 13) % 10000, clock // (DAY * 32) % 13, clock // DAY % 32)
    o[0] = b" "
    o = put_clock(o + 1, clock // 3600 % 24, clock // 60 % 60, clock % 60)
    return put_exact_fraction(o, value % unit, digits)


cdef char* put_old_timestamp(char* o, const uint8_t* p, int digits) noexcept nogil:
    """Seconds since 1970, little-endian; with a fraction they are big-endian and followed by it."""
    o = put_seconds(o, <uint32_t> (be(p, 4) if digits else le(p, 4)))
    return put_exact_fraction(o, be(p + 4, (digits + 1) // 2), digits)


cdef void civil_from_days(uint32_t days, int* year, int* month, int* day) noexcept nogil:
    """Gregorian date of a day since 1970-01-01: years start in March, so that the leap day is the last."""
    cdef uint32_t z = days + 719468, era = z // 146097, of_era = z - era * 146097
    cdef uint32_t years = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    cdef uint32_t of_year = of_era - (365 * years + years // 4 - years // 100)
    cdef uint32_t shifted = (5 * of_year + 2) // 153
    day[0] = of_year - (153 * shifted + 2) // 5 + 1
    month[0] = shifted + 3 if shifted < 10 else shifted - 9
    year[0] = years + era * 400 + (1 if month[0] <= 2 else 0)


def float_text(double value, bint single=False):
    """Return the canonical text of a DOUBLE, or of a FLOAT if `single`, as bytes."""
    cdef char[64] text
    return text[:put_float(text, value, single) - text]
