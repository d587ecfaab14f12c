"""Converts text to UTF-8 from character sets other than UTF-8."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from databus_binlog.buffer cimport Buffer, append
from databus_binlog.faults cimport Fault
from databus_binlog.msgpack cimport put_bin
from libc.stdint cimport uint8_t
from libc.string cimport memcpy


cdef inline void write_single_byte(Buffer* out, const uint8_t* table, const uint8_t* p, size_t size) noexcept nogil:
    """Write text of a single-byte character set as msgpack `bin`. The caller has reserved `5 + 3 * size` bytes.

    `table` has four bytes for each of the 256 characters: the length of its UTF-8 form, and three bytes with this form.
    """
    cdef size_t longer = 0, i
    cdef uint8_t high = 0
    cdef const uint8_t* entry
    cdef char* o = out.data + out.size
    for i in range(size):
        high |= p[i]
    if high < 0x80 and table[0x7E * 4 + 1] == 0x7E:  # ASCII, a subset of all these character sets except swe7
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


cdef inline Fault append_decoded(Buffer* out, object decode, const uint8_t* p, size_t size) except Fault.RAISED:
    """Append text of a multi-byte character set as UTF-8; `decode` turns its bytes into a str."""
    try:
        text = decode(PyBytes_FromStringAndSize(<const char*> p, size)).encode()
    except UnicodeError:
        return Fault.BAD_TEXT
    return append(out, PyBytes_AS_STRING(text), len(text))
