"""Writes row images as msgpack arrays: a value is the `bin` of its text or bytes, NULL is nil, ABSENT is false."""

from databus_binlog.buffer cimport Buffer
from databus_binlog.columns cimport Column
from databus_binlog.faults cimport Fault
from libc.stdint cimport uint8_t, uint32_t


cdef struct Image:
    const uint8_t* present  # bitmap of the columns in the image, NULL if it has all of them
    bint complete  # it has all columns except, maybe, hidden ones
    uint32_t null_bytes  # bytes of the bitmap of NULLs, which has a bit for each column that is present
    bint partial  # an after image of PARTIAL_UPDATE_ROWS: a JSON value may be logged as diffs from the before image


cdef struct RowImages:
    const Column* columns
    uint32_t count  # columns, without the hidden ones, which come last
    uint32_t hidden
    uint32_t json_columns
    uint32_t sides  # images per row: an update has two, before and after
    Image[2] images
    size_t limit  # bytes that all compressed values together may inflate to
    size_t inflated  # bytes that they have inflated to so far
    Buffer* scratch  # the inflated value of a compressed column
    Buffer* json  # by column: offset and size, in the output, of the JSON text of the before image
    uint32_t written  # number of images written
    uint32_t failed  # index of the column that a fault is about


cdef Fault write_images(RowImages* rows, const uint8_t* p, const uint8_t* end, Buffer* out) except Fault.RAISED
cdef void set_present(Image* image, const uint8_t* bitmap, uint32_t visible, uint32_t hidden) noexcept nogil


cdef inline bint bit(const uint8_t* bitmap, uint32_t index) noexcept nogil:
    return bitmap[index >> 3] >> (index & 7) & 1
