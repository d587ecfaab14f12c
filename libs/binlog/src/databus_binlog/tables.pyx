"""Keeps the table maps that rows refer to by number."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from databus_binlog.buffer cimport append
from databus_binlog.byte_order cimport le
from databus_binlog.faults cimport check
from libc.stdlib cimport free
from libc.string cimport memcmp

from databus_binlog.event_types import EventType as E
from databus_binlog.table_map import names_of, parse_table_map

cdef int TABLE_MAP = E.TABLE_MAP

cdef enum:
    REMEMBERED = 10_000  # plans


cdef class Tables:
    def __cinit__(self, wanted, describe, dict collations):
        self.wanted, self.describe, self.collations = wanted, describe, collations
        self.plans = {}
        self.mapped = []

    def __dealloc__(self):
        free(self.numbers.data)

    cdef int add(self, EventWriter event, const uint8_t* body, const uint8_t* end, str flavor) except -1:
        """Read table number u48, flags u16, and the table's layout, which is parsed only if it is new."""
        cdef uint64_t number
        cdef Py_ssize_t size = end - body - 8
        cdef TablePlan plan = self.recent
        event.need(size, 0, TABLE_MAP)
        if plan is None or PyBytes_GET_SIZE(plan.layout) != size or memcmp(
            PyBytes_AS_STRING(plan.layout), body + 8, size
        ) != 0:
            layout = body[8:end - body]
            plan = self.plans.get(layout)
            if plan is None:
                plan = self.plan_of(event, layout, flavor)
                if len(self.plans) >= REMEMBERED:
                    self.plans.clear()
                self.plans[layout] = plan
            self.recent = plan
        number = le(body, 6)
        check(append(&self.numbers, &number, sizeof(number)))
        self.mapped.append(plan)
        return 0

    cdef TablePlan plan_of(self, EventWriter event, bytes layout, str flavor):
        """Make the plan for a layout. Raises CorruptEvent, and what `wanted` and `describe` raise."""
        try:
            names = names_of(layout)
        except (LookupError, ValueError) as error:
            raise event.corrupt(TABLE_MAP, error) from error
        if self.wanted is not None and not self.wanted(*names):
            return TablePlan.unwanted(layout)
        try:
            table = parse_table_map(layout, flavor, self.collations)
        except (LookupError, ValueError) as error:
            raise event.corrupt(TABLE_MAP, error) from error
        if self.describe is not None:
            table = table.described_as(self.describe(table))
        return TablePlan.of(layout, table)

    cdef TablePlan find(self, uint64_t number):
        """Return the plan of the statement's last table map with this number, or None."""
        cdef const uint64_t* numbers = <const uint64_t*> self.numbers.data
        cdef Py_ssize_t i
        for i in range(self.numbers.size // sizeof(number) - 1, -1, -1):
            if numbers[i] == number:
                return <TablePlan> self.mapped[i]
        return None

    cdef int forget(self) except -1:
        """Forget the table maps: the statement, or the file, has ended."""
        self.numbers.size = 0
        self.mapped.clear()
        return 0

    cdef int forget_descriptions(self) except -1:
        """Forget what `describe` has returned: DDL may have changed what table maps do not contain."""
        if self.describe is not None:
            self.plans.clear()
            self.recent = None
        return 0
