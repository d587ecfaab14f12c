# distutils: libraries = z
"""Inflates MariaDB's compressed columns and events with zlib."""

from databus_binlog.buffer cimport append, room
from databus_binlog.faults cimport check
from libc.stdlib cimport free
from libc.string cimport memset

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
    STEP = 1 << 16  # bytes inflated at once


cdef Fault inflate_column(Buffer* out, const uint8_t* p, size_t size) noexcept nogil:
    """Replace the content of `out` by a compressed column's value: inflated, or copied if the byte at `p` is 0."""
    cdef int lengths
    out.size = 0
    if room(out, 1) == NULL:
        return Fault.NO_MEMORY
    if size == 0:
        return Fault.NONE
    if p[0] == 0:
        return append(out, p + 1, size - 1)
    lengths = p[0] & 7
    if p[0] & 0xF0 != 0x80 or lengths > 4 or size < <size_t> (1 + lengths):
        return Fault.BAD_COMPRESSION
    return inflate_stream(
        out, p + 1 + lengths, size - 1 - lengths, be(p + 1, lengths), RAW_DEFLATE if p[0] & 8 else ZLIB_HEADER
    )


cdef int inflate_event(Buffer* out, const uint8_t* p, size_t size) except -1:
    """Replace the content of `out` by the data of a compressed event. Raises ValueError if it is damaged."""
    cdef int lengths = p[0] & 7 if size else 0
    cdef Fault fault = Fault.BAD_COMPRESSION
    out.size = 0
    if size and p[0] & 0xF8 == 0x80 and lengths <= 4 and size >= <size_t> (1 + lengths):
        fault = inflate_stream(out, p + 1 + lengths, size - 1 - lengths, be(p + 1, lengths), ZLIB_HEADER)
    check(fault)
    if fault != Fault.NONE:
        raise ValueError("its compressed data can't be inflated")
    return 0


cdef bytes inflated_statement(const uint8_t* p, size_t size):
    """Return the text of a compressed statement. Raises ValueError if it is damaged."""
    cdef Buffer text
    memset(&text, 0, sizeof(text))
    try:
        inflate_event(&text, p, size)
        return text.data[:text.size]
    finally:
        free(text.data)


cdef Fault inflate_stream(Buffer* out, const uint8_t* p, size_t size, size_t announced, int window_bits) noexcept nogil:
    """Append the `announced` bytes of a deflate stream. Memory grows with the data, not with the announced size."""
    cdef z_stream stream
    cdef size_t left = announced, step
    cdef int answer = Z_OK
    cdef char* o
    memset(&stream, 0, sizeof(stream))
    stream.next_in = <uint8_t*> p
    stream.avail_in = <unsigned int> size
    if inflateInit2(&stream, window_bits) != Z_OK:
        return Fault.NO_MEMORY
    while answer == Z_OK or answer == Z_BUF_ERROR:
        step = min(left, <size_t> STEP)
        o = room(out, step + 1)  # one more, to notice a stream that is longer than announced
        if o == NULL:
            inflateEnd(&stream)
            return Fault.NO_MEMORY
        stream.next_out = <uint8_t*> o
        stream.avail_out = <unsigned int> (step + (left == step))
        answer = inflate(&stream, Z_FINISH)
        step = stream.next_out - <uint8_t*> o
        if step > left or (step == 0 and answer != Z_STREAM_END):
            break
        out.size += step
        left -= step
    inflateEnd(&stream)
    return Fault.NONE if answer == Z_STREAM_END and left == 0 else Fault.BAD_COMPRESSION
