"""Collects the GTIDs of consecutive transactions as few texts: one GTID set for each run of them."""

from databus_wire.msgpack_events cimport Text
from libc.stdint cimport uint64_t


cdef class ExecutedGtids:
    cdef list sets  # the runs that have ended
    cdef Text prefix  # of the run's GTIDs: what precedes their numbers; a null pointer if there is no run
    cdef uint64_t first, last  # numbers of the run's GTIDs

    cdef int add(self, Text gtid) except -1
    cdef int add_set(self, Text gtids) except -1
    cdef list take(self)
    cdef bint is_empty(self)
    cdef bint has_one_run(self)
    cdef int join(self, ExecutedGtids later) except -1
    cdef str run_text(self)
    cdef int end_run(self) except -1
