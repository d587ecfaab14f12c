"""Collects the GTIDs of consecutive transactions as few texts.

A run is of GTIDs that differ only in their number. For MySQL (`uuid:n`, `uuid:tag:n`) the numbers have to be
consecutive, and the run is an interval. For MariaDB (`domain-server-n`) the last GTID stands for all before it.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from databus_wire.msgpack_events cimport is_text


cdef class ExecutedGtids:
    def __cinit__(self):
        self.sets = []

    cdef int add(self, Text gtid) except -1:
        """Add the GTID of the next transaction; it must outlive the run. An empty one changes nothing."""
        cdef Text prefix = gtid
        cdef uint64_t number = 0, power = 1
        cdef bint is_interval
        while prefix.size and b"0" <= prefix.data[prefix.size - 1] <= b"9" and power:
            prefix.size -= 1
            number += power * <uint64_t> (prefix.data[prefix.size] - 48)
            power = power * 10 if power < <uint64_t> 10**18 else 0
        if prefix.size == 0 or b"0" <= prefix.data[prefix.size - 1] <= b"9":  # more digits than a number may have here
            return self.add_set(gtid)
        is_interval = prefix.data[prefix.size - 1] == b":"
        if is_text(prefix, self.prefix.data, self.prefix.size) and (not is_interval or number == self.last + 1):
            self.last = number
            return 0
        self.end_run()
        self.prefix, self.first, self.last = prefix, number, number
        return 0

    cdef int add_set(self, Text gtids) except -1:
        """Add a GTID set."""
        self.end_run()
        if gtids.size:
            self.sets.append(PyBytes_FromStringAndSize(gtids.data, gtids.size).decode())
        return 0

    cdef list take(self):
        """Return the collected GTIDs, as GTID sets to be merged in this order, and forget them."""
        self.end_run()
        sets, self.sets = self.sets, []
        return sets

    cdef bint is_empty(self):
        return self.prefix.data == NULL and not self.sets

    cdef bint has_one_run(self):
        """Return whether all collected GTIDs are in one run."""
        return self.prefix.data != NULL and not self.sets

    cdef int join(self, ExecutedGtids later) except -1:
        """Add the only run of `later`, which forgets it."""
        cdef bint is_interval = later.prefix.data[later.prefix.size - 1] == b":"
        cdef bint follows = not is_interval or later.first == self.last + 1
        if follows and is_text(later.prefix, self.prefix.data, self.prefix.size):
            self.last = later.last
        else:
            self.end_run()
            self.prefix, self.first, self.last = later.prefix, later.first, later.last
        later.prefix = Text(NULL, 0)
        return 0

    cdef str run_text(self):
        """Return the run as a GTID set."""
        prefix = PyBytes_FromStringAndSize(self.prefix.data, self.prefix.size).decode()
        is_interval = prefix.endswith(":") and self.first != self.last
        return f"{prefix}{self.first}-{self.last}" if is_interval else f"{prefix}{self.last}"

    cdef int end_run(self) except -1:
        if self.prefix.data != NULL:
            self.sets.append(self.run_text())
            self.prefix = Text(NULL, 0)
        return 0
