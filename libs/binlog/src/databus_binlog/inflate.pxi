# MariaDB's zlib: compressed columns (sql/field.cc, Field_longstr::compress) and compressed events (sql/log_event.cc).

cdef extern from "zlib.h" nogil:
    ctypedef struct z_stream:
        uint8_t* next_in
        unsigned int avail_in
        uint8_t* next_out
        unsigned int avail_out
    int Z_FINISH, Z_STREAM_END, Z_BUF_ERROR, Z_OK
    int inflateInit2(z_stream* stream, int window_bits)
    int inflate(z_stream* stream, int flush)
    int inflateEnd(z_stream* stream)

cdef enum:
    ZLIB_HEADER = 15  # window bits of a stream with zlib's header and checksum
    RAW_DEFLATE = -15
    INFLATED_AT_ONCE = 1 << 16


cdef Fault inflate_into(Buffer* out, const uint8_t* p, size_t size, size_t announced, int window_bits) noexcept nogil:
    """Append what a deflate stream holds. It must be `announced` bytes; memory grows with what really comes."""
    cdef z_stream stream
    cdef size_t left = announced, step
    cdef int answer = Z_OK
    cdef char* o
    memset(&stream, 0, sizeof(stream))
    stream.next_in = <uint8_t*> p
    stream.avail_in = <unsigned int> size
    if inflateInit2(&stream, window_bits) != Z_OK:
        return NO_MEMORY
    while answer == Z_OK or answer == Z_BUF_ERROR:
        step = min(left, <size_t> INFLATED_AT_ONCE)
        o = room(out, step + 1)  # one more, to notice a stream that is longer than announced
        if o == NULL:
            inflateEnd(&stream)
            return NO_MEMORY
        stream.next_out = <uint8_t*> o
        stream.avail_out = <unsigned int> (step + (left == step))
        answer = inflate(&stream, Z_FINISH)
        step = stream.next_out - <uint8_t*> o
        if step > left or (step == 0 and answer != Z_STREAM_END):
            break
        out.size += step
        left -= step
    inflateEnd(&stream)
    return NONE if answer == Z_STREAM_END and left == 0 else BAD_COMPRESSION


cdef Fault inflate_column(Buffer* out, const uint8_t* p, size_t size) noexcept nogil:
    """Replace `out` by the value of a compressed column: a method byte and, compressed, its length big-endian before it."""
    cdef int lengths
    out.size = 0
    if room(out, 1) == NULL:
        return NO_MEMORY
    if size == 0:
        return NONE
    if p[0] == 0:  # not worth compressing
        return append(out, p + 1, size - 1)
    lengths = p[0] & 7
    if p[0] & 0xF0 != 0x80 or lengths > 4 or size < <size_t> (1 + lengths):
        return BAD_COMPRESSION
    return inflate_into(
        out, p + 1 + lengths, size - 1 - lengths, be(p + 1, lengths), RAW_DEFLATE if p[0] & 8 else ZLIB_HEADER
    )


cdef size_t inflated_size(const uint8_t* p, size_t size) noexcept nogil:
    """Return how many bytes a compressed column or event says it inflates to; 0 where it is not compressed, or malformed."""
    if size == 0 or p[0] & 0xF0 != 0x80 or p[0] & 7 > 4 or size <= <size_t> (p[0] & 7):
        return 0
    return be(p + 1, p[0] & 7)


cdef Fault inflate_event(Buffer* out, const uint8_t* p, size_t size) noexcept nogil:
    """Replace `out` by a compressed event's data: 0x80 | bytes of its length, the length big-endian, zlib's stream."""
    cdef int lengths
    out.size = 0
    if size == 0:
        return BAD_COMPRESSION
    lengths = p[0] & 7
    if p[0] & 0xF8 != 0x80 or lengths > 4 or size < <size_t> (1 + lengths):
        return BAD_COMPRESSION
    return inflate_into(out, p + 1 + lengths, size - 1 - lengths, be(p + 1, lengths), ZLIB_HEADER)
