# Values as JSON's text, written where there is room for them.

cdef enum:
    CONTROL = 5  # bytes more that a control character takes without a letter of its own

cdef const char* HEX = b"0123456789abcdef"

#: what stands behind the backslash, and how many bytes more it takes: none for bytes that stand for themselves
cdef uint8_t letters[256]
cdef uint8_t more[256]
for _byte in range(256):
    letters[_byte] = b"u"[0]
    more[_byte] = CONTROL if _byte < 0x20 else 0
for _byte, _letter in zip(b'\b\f\n\r\t"\\', b'bfnrt"\\'):
    letters[_byte] = _letter
    more[_byte] = 1


cdef extern from * nogil:
    """
    #include <cstdint>
    #include <cstring>
    #if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    #error "the first byte of a word must be its lowest"
    #endif
    // How many of the next eight bytes JSON has as they are, counted up to the first that it has not.
    static inline int plain_of_eight(const uint8_t* i, char* o) {
        const uint64_t ones = 0x0101010101010101u;
        uint64_t w;
        std::memcpy(&w, i, 8);
        std::memcpy(o, &w, 8);
        uint64_t quote = w ^ ones * 0x22, backslash = w ^ ones * 0x5C;
        uint64_t hit = ((w - ones * 0x20) & ~w) | ((quote - ones) & ~quote) | ((backslash - ones) & ~backslash);
        hit &= ones * 0x80;
        return hit ? __builtin_ctzll(hit) >> 3 : 8;
    }
    static inline bool ascii_of_eight(const uint8_t* i) {
        uint64_t w;
        std::memcpy(&w, i, 8);
        return !(w & 0x8080808080808080u);
    }
    """
    int plain_of_eight(const uint8_t* i, char* o)
    bint ascii_of_eight(const uint8_t* i)


cdef size_t escaped_size(const uint8_t* i, size_t size) noexcept:
    """Say how much room `put_escaped` needs."""
    cdef size_t grown = size + 8, place  # it copies eight bytes at once
    for place in range(size):
        grown += more[i[place]]
    return grown


cdef char* put_escaped(const uint8_t* i, size_t size, char* o) noexcept:
    """Write UTF-8 as a string's inside; what is returned is behind it."""
    cdef const uint8_t* end = i + size
    cdef int plain
    while i < end:
        if end - i >= 8:
            plain = plain_of_eight(i, o)
            i += plain
            o += plain
            if plain == 8:
                continue
        o = put_one(i[0], o)
        i += 1
    return o


cdef inline char* put_one(uint8_t byte, char* o) noexcept:
    if more[byte] == 0:
        o[0] = byte
        return o + 1
    o[0] = 0x5C
    o[1] = letters[byte]
    if more[byte] == CONTROL:
        o[2] = o[3] = 0x30
        o[4] = HEX[byte >> 4]
        o[5] = HEX[byte & 15]
    return o + more[byte] + 1


cdef size_t latin_1_size(const uint8_t* i, size_t size) noexcept:
    cdef size_t grown = size, place
    for place in range(size):
        grown += more[i[place]] + (i[place] >> 7)
    return grown


cdef char* put_latin_1(const uint8_t* i, size_t size, char* o) noexcept:
    """Write each byte as the character of its number."""
    cdef size_t place
    for place in range(size):
        if i[place] < 0x80:
            o = put_one(i[place], o)
        else:
            o[0] = 0xC0 | i[place] >> 6
            o[1] = 0x80 | i[place] & 0x3F
            o += 2
    return o


cdef bint is_short(bytes number) noexcept:
    """Tell whether a number has one to seven digits, a point and digits, and is not under 0.1."""
    cdef const char* text = PyBytes_AS_STRING(number)
    cdef const char* end = text + PyBytes_GET_SIZE(number)
    cdef const char* point
    if text[0] == 0x2D:
        text += 1
    point = text
    while 0x30 <= point[0] <= 0x39:  # a zero byte ends it
        point += 1
    if not 1 <= point - text <= 7 or point[0] != 0x2E or point + 1 >= end:
        return False
    if text[0] == 0x30 and point[1] == 0x30:
        return False
    point += 1
    while 0x30 <= point[0] <= 0x39:
        point += 1
    return point == end


cdef bint is_utf8(const uint8_t* i, Py_ssize_t size) noexcept:
    """Tell whether text is well-formed (table 3-7 of the Unicode standard)."""
    cdef const uint8_t* end = i + size
    cdef uint8_t low, high
    cdef Py_ssize_t following
    while i < end:
        if end - i >= 8 and ascii_of_eight(i):
            i += 8
            continue
        if i[0] < 0x80:
            i += 1
            continue
        low, high = 0x80, 0xBF
        if 0xC2 <= i[0] <= 0xDF:
            following = 1
        elif 0xE0 <= i[0] <= 0xEF:
            following = 2
            if i[0] == 0xE0:
                low = 0xA0
            elif i[0] == 0xED:
                high = 0x9F
        elif 0xF0 <= i[0] <= 0xF4:
            following = 3
            if i[0] == 0xF0:
                low = 0x90
            elif i[0] == 0xF4:
                high = 0x8F
        else:
            return False
        if end - i <= following or not low <= i[1] <= high:
            return False
        if following > 1 and i[2] & 0xC0 != 0x80:
            return False
        if following > 2 and i[3] & 0xC0 != 0x80:
            return False
        i += following + 1
    return True
