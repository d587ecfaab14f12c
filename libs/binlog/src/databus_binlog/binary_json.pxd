"""Writes MySQL's binary JSON as the server prints it (sql-common/json_binary.cc, Json_wrapper::to_string)."""

from databus_binlog.buffer cimport Buffer
from databus_binlog.faults cimport Fault
from libc.stdint cimport uint8_t

cdef Fault put_json(Buffer* out, const uint8_t* p, const uint8_t* end) noexcept nogil
