"""Keeps the table maps that rows refer to by number."""

from databus_binlog.buffer cimport Buffer
from databus_binlog.event_writer cimport EventWriter
from databus_binlog.table_plan cimport TablePlan
from libc.stdint cimport uint8_t, uint64_t


cdef class Tables:
    """Finds the plan of a rows event's table by the table's number, which is valid within one statement."""
    cdef object wanted, describe
    cdef dict collations
    cdef dict plans  # by layout; a plan is used again for every table map with the same layout
    cdef TablePlan recent  # plan of the last table map: the next one often has the same layout
    cdef Buffer numbers  # uint64_t: table numbers of the statement's table maps
    cdef list mapped  # plans of these table maps, in the same order

    cdef int add(self, EventWriter event, const uint8_t* body, const uint8_t* end, str flavor) except -1
    cdef TablePlan plan_of(self, EventWriter event, bytes layout, str flavor)
    cdef TablePlan find(self, uint64_t number)
    cdef int forget(self) except -1
    cdef int forget_descriptions(self) except -1
