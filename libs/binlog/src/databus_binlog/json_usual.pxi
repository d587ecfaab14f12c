# The usual texts of decimals, dates and times, read as what Connect has of them. Whatever is not usual is left to a
# conversion: zero dates, years before 1, numbers of more than 18 digits, and all that is no such text at all.

cdef enum:
    MICRO = 1000000
    LONGEST = 18  # digits that are always less than 2⁶³


cdef inline int number_of(const char* text, int count) noexcept:
    """Read so many digits; -1 if there are other bytes, of which a zero byte behind the text is one."""
    cdef int number = 0, place
    for place in range(count):
        if not 0x30 <= text[place] <= 0x39:
            return -1
        number = number * 10 + text[place] - 0x30
    return number


cdef bint read_day(const char* text, int64_t* days) noexcept:
    """Read YYYY-MM-DD as days since 1970."""
    cdef int year, month, day, last
    year = number_of(text, 4)
    if year < 1 or text[4] != 0x2D:
        return False
    month = number_of(text + 5, 2)
    if not 1 <= month <= 12 or text[7] != 0x2D:
        return False
    day = number_of(text + 8, 2)
    if month == 2:
        last = 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    else:
        last = 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31
    if not 1 <= day <= last:
        return False
    if month < 3:  # years that begin with March have their leap day at the end, and months that 153 / 5 tells
        year -= 1
        month += 12
    days[0] = year * 365 + year // 4 - year // 100 + year // 400 + (153 * (month - 3) + 2) // 5 + day - 719469
    return True


cdef bint read_clock(const char* text, const char* end, int64_t* microseconds) noexcept:
    """Read MM:SS and up to six digits of a fraction."""
    cdef int minutes, seconds, fraction = 0, digits
    minutes = number_of(text, 2)
    if not 0 <= minutes <= 59 or text[2] != 0x3A:
        return False
    seconds = number_of(text + 3, 2)
    if not 0 <= seconds <= 59:
        return False
    text += 5
    if text != end:
        digits = end - text - 1
        if text[0] != 0x2E or not 1 <= digits <= 6:
            return False
        fraction = number_of(text + 1, digits)
        if fraction < 0:
            return False
        for digits in range(digits, 6):
            fraction *= 10
    microseconds[0] = (minutes * 60 + seconds) * <int64_t> MICRO + fraction
    return True


cdef bint read_time(const char* text, const char* end, int64_t* microseconds) noexcept:
    """Read a TIME of two or three digits of hours."""
    cdef bint negative = text[0] == 0x2D
    cdef int digits, hours
    text += negative
    digits = 2 if end - text > 2 and text[2] == 0x3A else 3
    hours = number_of(text, digits)
    if hours < 0 or text[digits] != 0x3A or not read_clock(text + digits + 1, end, microseconds):
        return False
    microseconds[0] += hours * <int64_t> 3600 * MICRO
    if negative:
        microseconds[0] = -microseconds[0]
    return True


cdef bint read_moment(const char* text, const char* end, int64_t* microseconds) noexcept:
    """Read a DATETIME or TIMESTAMP as microseconds since 1970."""
    cdef int64_t days
    cdef int hours
    if not read_day(text, &days) or text[10] != 0x20:
        return False
    hours = number_of(text + 11, 2)
    if not 0 <= hours <= 23 or text[13] != 0x3A or not read_clock(text + 14, end, microseconds):
        return False
    microseconds[0] += (days * 24 + hours) * 3600 * MICRO
    return True


cdef bint read_unscaled(const char* text, const char* end, int64_t* number) noexcept:
    """Read a decimal without its point."""
    cdef bint negative = text[0] == 0x2D
    cdef int digits = 0
    cdef bint pointed = False
    text += negative
    number[0] = 0
    while text < end:
        if text[0] == 0x2E and not pointed:
            pointed = True
        elif 0x30 <= text[0] <= 0x39 and digits < LONGEST:
            number[0] = number[0] * 10 + text[0] - 0x30
            digits += 1
        else:
            return False
        text += 1
    if negative:
        number[0] = -number[0]
    return digits > 0


cdef inline char* put_integer(int64_t number, char* o) noexcept:
    """Write a number's digits, of which there are at most 19, and its sign; what is returned is behind them."""
    cdef char digits[20]
    cdef char* first = digits + 20
    cdef uint64_t rest = number
    if number < 0:
        o[0] = 0x2D
        o += 1
        rest = 0 - rest
    while True:
        first -= 1
        first[0] = 0x30 + rest % 10
        rest //= 10
        if rest == 0:
            break
    memcpy(o, first, digits + 20 - first)
    return o + (digits + 20 - first)


cdef inline char* put_big_endian(int64_t number, char* o) noexcept:
    """Write a number in base64: two's complement, big endian, as short as it can be, as Java's BigInteger has it."""
    cdef uint8_t octets[8]
    cdef int place, skipped = 0
    for place in range(8):
        octets[place] = <uint64_t> number >> (56 - 8 * place)
    while skipped < 7 and octets[skipped] == (0xFF if number < 0 else 0) and (octets[skipped + 1] >> 7) == (number < 0):
        skipped += 1
    return put_base64(octets + skipped, 8 - skipped, o)
