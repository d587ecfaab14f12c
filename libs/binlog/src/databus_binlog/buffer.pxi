# A growing buffer that is reused from event to event, and msgpack's heads.

cdef enum Fault:
    NONE = 0
    NO_MEMORY
    TRUNCATED
    BAD_JSON
    BAD_TEXT
    BAD_COMPRESSION
    BAD_DIFF
    NO_IMAGE_BEFORE
    NO_COLUMNS
    TOO_LARGE
    RAISED  # a Python exception is on its way


cdef enum:
    KEPT = 4 << 20  # bytes of memory that a buffer keeps for the next events


cdef struct Buffer:
    char* data
    size_t size
    size_t capacity


cdef inline char* room(Buffer* buffer, size_t size) noexcept nogil:
    """Return where to write the next `size` bytes, or NULL without memory. Moves earlier pointers."""
    cdef size_t capacity
    cdef char* data
    if buffer.size + size > buffer.capacity:
        capacity = max(<size_t> 65536, buffer.capacity)
        while capacity < buffer.size + size:
            capacity *= 2
        data = <char*> realloc(buffer.data, capacity)
        if data == NULL:
            return NULL
        buffer.data = data
        buffer.capacity = capacity
    return buffer.data + buffer.size


cdef inline Fault append(Buffer* buffer, const void* data, size_t size) noexcept nogil:
    cdef char* o
    if size == 0:  # of a buffer without memory yet, room() is NULL
        return NONE
    o = room(buffer, size)
    if o == NULL:
        return NO_MEMORY
    memcpy(o, data, size)
    buffer.size += size
    return NONE


cdef inline void trim(Buffer* buffer) noexcept nogil:
    """Give back what a large event made of it."""
    cdef char* data
    if buffer.capacity > KEPT and buffer.size <= KEPT:
        data = <char*> realloc(buffer.data, KEPT)
        if data != NULL:
            buffer.data, buffer.capacity = data, KEPT


cdef int check(Fault fault) except -1:
    if fault == NO_MEMORY:
        raise MemoryError
    return 0


cdef extern from * nogil:
    """
    #include <cstdint>
    #include <cstring>
    // In network byte order, by shifts, which compilers make one store of.
    static inline char* put_big16(char* o, uint16_t v) { o[0] = v >> 8; o[1] = v; return o + 2; }
    static inline char* put_big32(char* o, uint32_t v) {
        o[0] = v >> 24; o[1] = v >> 16; o[2] = v >> 8; o[3] = v; return o + 4;
    }
    static inline char* put_big64(char* o, uint64_t v) { return put_big32(put_big32(o, v >> 32), v); }
    """
    char* put_big16(char* o, uint16_t value)
    char* put_big32(char* o, uint32_t value)
    char* put_big64(char* o, uint64_t value)


cdef inline char* put_uint(char* o, uint64_t value) noexcept nogil:
    """Write a whole number, at most nine bytes."""
    if value < 128:
        o[0] = <char> value
        return o + 1
    if value < 65536:
        o[0] = <char> 0xCD
        return put_big16(o + 1, <uint16_t> value)
    if value < <uint64_t> 1 << 32:
        o[0] = <char> 0xCE
        return put_big32(o + 1, <uint32_t> value)
    o[0] = <char> 0xCF
    return put_big64(o + 1, value)


cdef inline char* put_bool(char* o, bint value) noexcept nogil:
    o[0] = <char> (0xC3 if value else 0xC2)
    return o + 1


cdef inline char* put_bin(char* o, size_t size) noexcept nogil:
    """Write the head of a byte string, at most five bytes."""
    if size < 256:
        o[0] = <char> 0xC4
        o[1] = <char> size
        return o + 2
    if size < 65536:
        o[0] = <char> 0xC5
        return put_big16(o + 1, <uint16_t> size)
    o[0] = <char> 0xC6
    return put_big32(o + 1, <uint32_t> size)


cdef inline char* put_str(char* o, const char* text, size_t size) noexcept nogil:
    """Write a short string: a file's name, a GTID, a fingerprint. There is room for three more bytes."""
    o[0] = <char> 0xDA
    memcpy(put_big16(o + 1, <uint16_t> size), text, size)
    return o + 3 + size


cdef inline char* put_array(char* o, size_t count) noexcept nogil:
    """Write the head of an array, at most three bytes: a table has no more than 4096 columns."""
    if count < 16:
        o[0] = <char> (0x90 | count)
        return o + 1
    o[0] = <char> 0xDC
    return put_big16(o + 1, <uint16_t> count)
