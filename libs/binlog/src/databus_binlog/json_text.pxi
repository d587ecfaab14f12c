# Values as JSON's text, written where there is room for them.

cdef enum:
    LONGEST_ESCAPE = 6
    SHORT = 4096  # bytes of text for which so much room is taken as it could need at most

#: how a byte is written in a string, and in how many bytes: one of UTF-8, and a character by its number
cdef uint64_t escaped[256]
cdef uint64_t characters[256]
cdef uint8_t escaped_sizes[256]
cdef uint8_t character_sizes[256]


def _fill_tables():
    short = dict(zip(b'\b\f\n\r\t"\\', (b"\\b", b"\\f", b"\\n", b"\\r", b"\\t", b'\\"', b"\\\\")))
    for byte in range(256):
        text = short.get(byte) or (b"\\u%04x" % byte if byte < 0x20 else bytes([byte]))
        escaped[byte], escaped_sizes[byte] = int.from_bytes(text, "little"), len(text)
        text = text if byte < 0x80 else chr(byte).encode()
        characters[byte], character_sizes[byte] = int.from_bytes(text, "little"), len(text)


_fill_tables()

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
    """
    int plain_of_eight(const uint8_t* i, char* o)


cdef size_t room_for(const uint8_t* i, size_t size, const uint8_t* sizes) noexcept:
    """Say how much room text needs, with eight bytes more: so many are written at once."""
    cdef size_t needed = 8, place
    if size < SHORT:
        return size * LONGEST_ESCAPE + 8
    for place in range(size):
        needed += sizes[i[place]]
    return needed


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
        memcpy(o, &escaped[i[0]], 8)
        o += escaped_sizes[i[0]]
        i += 1
    return o


cdef char* put_characters(const uint8_t* i, size_t size, char* o) noexcept:
    """Write each byte as the character of its number."""
    cdef size_t place
    for place in range(size):
        memcpy(o, &characters[i[place]], 8)
        o += character_sizes[i[place]]
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


#: of each byte, where it leads from each state: a state is the number of the bit at which the next one is told. What
#: comes next decides the state (table 3-7 of the Unicode standard): any character, nothing as the text is refused, one
#: to three bytes, two or three of which the first has not the whole range
cdef uint64_t leads[256]

cdef enum:
    STATE_BITS = 6
    STATE = 63


def _fill_leads():
    character, refused, one, two, three, after_e0, after_ed, after_f0, after_f4 = range(0, 9 * STATE_BITS, STATE_BITS)
    steps = [
        (character, 0x00, 0x7F, character),
        (character, 0xC2, 0xDF, one),
        (character, 0xE0, 0xE0, after_e0),
        (character, 0xE1, 0xEF, two),
        (character, 0xED, 0xED, after_ed),
        (character, 0xF0, 0xF0, after_f0),
        (character, 0xF1, 0xF3, three),
        (character, 0xF4, 0xF4, after_f4),
        (one, 0x80, 0xBF, character),
        (two, 0x80, 0xBF, one),
        (three, 0x80, 0xBF, two),
        (after_e0, 0xA0, 0xBF, one),
        (after_ed, 0x80, 0x9F, one),
        (after_f0, 0x90, 0xBF, two),
        (after_f4, 0x80, 0x8F, two),
    ]
    for byte in range(256):
        led = {state: refused for state in range(0, 9 * STATE_BITS, STATE_BITS)}
        led.update({state: to for state, first, last, to in steps if first <= byte <= last})
        leads[byte] = sum(to << state for state, to in led.items())


_fill_leads()


cdef bint is_utf8(const uint8_t* i, Py_ssize_t size) noexcept:
    """Tell whether text is well-formed; without a branch, for text of several languages leaves nothing to predict."""
    cdef uint64_t state = 0
    cdef Py_ssize_t place
    for place in range(size):
        state = leads[i[place]] >> (state & STATE)
    return state & STATE == 0
