"""Decodes rows events: finds their table, and where their row images begin."""

cimport cython
from databus_binlog.buffer cimport Buffer
from databus_binlog.event_writer cimport EventWriter
from databus_binlog.faults cimport Fault
from databus_binlog.row_images cimport RowImages
from databus_binlog.table_plan cimport TablePlan
from databus_binlog.tables cimport Tables
from libc.stdint cimport uint8_t, uint32_t, uint64_t

cdef int rows_action(int kind) noexcept nogil


@cython.final
cdef class RowsDecoder:
    """Decodes rows events, and writes the results through the EventWriter that has the event's position."""
    cdef Tables maps
    cdef dict tables  # TableMaps of the rows in the output, by fingerprint
    cdef uint64_t outputs  # number of outputs begun so far
    cdef object parts  # control.Parts: a rows event that is logged in parts
    cdef bint in_parts  # more parts of it follow
    cdef Buffer inflated  # the data of a compressed rows event
    cdef Buffer json, scratch  # see RowImages

    cdef int begin_output(self) except -1
    cdef int trim(self) except -1
    cdef int decode(self, EventWriter to, int kind, const uint8_t* p, const uint8_t* end) except -1
    cdef int decode_part(self, EventWriter to, bytes body, size_t size) except -1
    cdef int write_skipped(self, EventWriter to, int kind, const uint8_t* p, const uint8_t* end, size_t size) except -1

    cdef TablePlan plan_of(
        self, EventWriter to, int kind, const uint8_t* p, const uint8_t* end, bint* statement_end
    )
    cdef int write(
        self, EventWriter to, TablePlan plan, uint64_t number, int kind, const uint8_t* p, const uint8_t* end,
        bint statement_end,
    ) except -1
    cdef int write_oversized(
        self, EventWriter to, TablePlan plan, int kind, size_t size, bint statement_end
    ) except -1
    cdef int add_table(self, TablePlan plan) except -1
    cdef const uint8_t* lay_out(
        self, RowImages* rows, TablePlan plan, int kind, const uint8_t* p, size_t limit
    ) except NULL
