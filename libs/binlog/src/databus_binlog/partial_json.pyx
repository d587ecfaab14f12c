"""Decodes JSON values that are logged as diffs from the before image."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from databus_binlog.buffer cimport room
from databus_binlog.columns cimport read_length
from databus_binlog.msgpack cimport put_bin
from libc.string cimport memcpy

from databus_binlog.binary_json import json_text
from databus_binlog.json_diff import apply_diffs


cdef bint read_json_diffs(RowImages* rows, const uint8_t** p, const uint8_t* end, const uint8_t** diffs) noexcept nogil:
    """Read the options that precede an after image; return False if they are malformed or truncated.

    If bit 0 is set, a bitmap of the table's JSON columns follows, with a bit set for each column that is logged as
    diffs; `diffs` is then set to the bitmap's position.
    """
    cdef uint32_t size = (rows.json_columns + 7) // 8
    if p[0] == end or p[0][0] > 1:  # no other option is defined
        return False
    p[0] += 1
    if (p[0] - 1)[0] == 1:
        if end - p[0] < size:
            return False
        diffs[0] = p[0]
        p[0] += size
    return True


cdef Fault write_json_diff(
    RowImages* rows, uint32_t i, const uint8_t** p, const uint8_t* end, Buffer* out
) except Fault.RAISED:
    """Write the text of JSON column `i`: that of the before image with the diffs applied. The diffs may be empty."""
    cdef const size_t* before = <const size_t*> rows.json.data + 2 * i
    cdef size_t size, new_size
    cdef Fault fault = read_length(&rows.columns[i], p, end, &size)
    cdef const char* new
    if fault != Fault.NONE:
        return fault
    if before[0] == 0:
        return Fault.NO_BEFORE_IMAGE
    text = None
    if size:
        try:
            text = apply_diffs(
                out.data[before[0]:before[0] + before[1]], PyBytes_FromStringAndSize(<const char*> p[0] - size, size),
                json_text,
            )
        except (ValueError, LookupError):
            return Fault.BAD_DIFF
    new_size = before[1] if text is None else len(text)
    if room(out, 5 + new_size) == NULL:
        return Fault.NO_MEMORY
    new = out.data + before[0] if text is None else PyBytes_AS_STRING(text)
    out.size = put_bin(out.data + out.size, new_size) - out.data
    memcpy(out.data + out.size, new, new_size)
    out.size += new_size
    return Fault.NONE
