"""Decodes JSON values that PARTIAL_UPDATE_ROWS logs as diffs from the before image.

Layout: sql/rpl_record.cc and sql/json_diff.cc in MySQL's source.
"""

from databus_binlog.buffer cimport Buffer
from databus_binlog.faults cimport Fault
from databus_binlog.row_images cimport RowImages
from libc.stdint cimport uint8_t, uint32_t

cdef bint read_json_diffs(RowImages* rows, const uint8_t** p, const uint8_t* end, const uint8_t** diffs) noexcept nogil
cdef Fault write_json_diff(
    RowImages* rows, uint32_t i, const uint8_t** p, const uint8_t* end, Buffer* out
) except Fault.RAISED
