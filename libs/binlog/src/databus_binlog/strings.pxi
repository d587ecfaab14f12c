# Strings of other character sets than UTF-8: by a table of their 256 characters, or by a function of charsets.py.

cdef void write_by_table(const uint8_t* table, const uint8_t* p, size_t size, Buffer* out) noexcept:
    """Write a string of a single-byte set; there is room for three bytes a character. Entries: length, three bytes."""
    cdef size_t longer = 0, i
    cdef uint8_t high = 0
    cdef const uint8_t* entry
    cdef char* o = out.data + out.size
    for i in range(size):
        high |= p[i]
    if high < 0x80 and table[0x7E * 4 + 1] == 0x7E:  # ASCII, which these sets contain, but for swe7
        o = put_bin(o, size)
        memcpy(o, p, size)
        out.size = o + size - out.data
        return
    for i in range(size):
        longer += table[4 * p[i]] - 1
    o = put_bin(o, size + longer)
    for i in range(size):
        entry = table + 4 * p[i]
        memcpy(o, entry + 1, 3)
        o += entry[0]
    out.size = o - out.data


#: the functions that columns refer to by index
cdef list CODECS = []


cdef Fault write_by_codec(uint32_t codec, const uint8_t* p, size_t size, Buffer* out) except RAISED:
    try:
        text = CODECS[codec](PyBytes_FromStringAndSize(<const char*> p, size)).encode()
    except UnicodeError:
        return BAD_TEXT
    return append(out, PyBytes_AS_STRING(text), len(text))
