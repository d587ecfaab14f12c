"""Joins GTIDs with consecutive numbers, so that Python sees a text for each run of them instead of one for each."""

from databus_wire.msgpack_events cimport Text
from libc.stdint cimport uint64_t
from libc.string cimport memcmp, memcpy

cdef enum:
    MAX_PREFIX = 96  # a UUID and a tag have 70 bytes
    ZERO = 48  # the digit


cdef struct GtidRun:  # GTIDs of one source: `uuid:`, `uuid:tag:` or `domain-server-`, and a number
    char[MAX_PREFIX] prefix
    Py_ssize_t size  # of the prefix
    uint64_t first, last  # 0: there is no run


cdef inline bint is_digit(char byte) noexcept nogil:
    return ZERO <= byte <= ZERO + 9


cdef inline bint split_gtid(Text gtid, Py_ssize_t* prefix, uint64_t* number) noexcept nogil:
    """Split a GTID before its number; return False if it cannot be in a run."""
    cdef Py_ssize_t at = gtid.size
    cdef uint64_t value = 0, place = 1
    while at and is_digit(gtid.data[at - 1]):
        at -= 1
        value += place * (gtid.data[at] - ZERO)
        place *= 10
    prefix[0], number[0] = at, value
    return 0 < at <= MAX_PREFIX and 0 < value and gtid.size - at < 20


cdef inline bint extend_run(GtidRun* run, const char* prefix, Py_ssize_t size, uint64_t number) noexcept nogil:
    """Add a GTID to the run, or to an empty one; return False if it does not follow the run's last."""
    if run.last == 0:
        memcpy(run.prefix, prefix, size)
        run.size, run.first = size, number
    elif number != run.last + 1 or size != run.size or memcmp(run.prefix, prefix, size) != 0:
        return False
    run.last = number
    return True
