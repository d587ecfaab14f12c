"""Writes GTID, BEGIN and XID without Python objects: most events of a small transaction are of these types."""

from databus_binlog.event_writer cimport EventWriter
from libc.stdint cimport uint8_t

cdef int write_gtid(EventWriter to, int kind, const uint8_t* body, const uint8_t* end) except -1
cdef int write_gtid_mariadb(EventWriter to, const uint8_t* body, const uint8_t* end) except -1
cdef bint is_begin(const uint8_t* body, const uint8_t* end) noexcept nogil
cdef int write_begin(EventWriter to, const uint8_t* body) except -1
cdef int write_xid(EventWriter to, const uint8_t* body, const uint8_t* end) except -1
