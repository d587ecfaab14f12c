"""Row images to msgpack: an array for each image, of the text of each value as `bin`, NULL as nil, ABSENT as false."""

from databus_binlog.buffer cimport Buffer
from databus_binlog.columns cimport Column
from databus_binlog.faults cimport Fault
from libc.stdint cimport uint8_t, uint32_t


cdef struct Image:
    const uint8_t* present  # bitmap of the columns in the image, NULL if it has all of them
    uint32_t null_bytes  # of its bitmap of NULLs, which has a bit for each column that is present
    bint partial  # PARTIAL_UPDATE_ROWS: the image may have JSON as diffs from the before image


cdef struct RowImages:
    const Column* columns
    uint32_t count  # columns, without the hidden ones, which come last
    uint32_t hidden
    uint32_t json_columns
    uint32_t sides  # images per row: an update has two, before and after
    Image[2] images
    size_t limit  # bytes that compressed values may inflate to
    size_t inflated
    Buffer* scratch  # the inflated value
    Buffer* json  # offset and size of each JSON text of the before image in the output, by column
    uint32_t written  # images
    uint32_t failed  # index of the column that a fault is about


cdef Fault write_images(RowImages* rows, const uint8_t* p, const uint8_t* end, Buffer* out) except Fault.RAISED
cdef void set_present(Image* image, const uint8_t* bitmap, uint32_t columns) noexcept nogil


cdef inline bint bit(const uint8_t* bitmap, uint32_t index) noexcept nogil:
    return bitmap[index >> 3] >> (index & 7) & 1
