# The table maps that rows refer to by number, and the plans that were worked out for them.

cdef enum:
    REMEMBERED = 10_000  # plans


cdef class Tables:
    """Finds the plan of a row event's table. Its numbers hold within a statement, plans as long as layouts do."""
    cdef object wanted, describe
    cdef dict collations, plans
    cdef Plan recent     # of the last table map: it mostly comes again
    cdef Buffer numbers  # of the statement's table maps, and their plans at the same places
    cdef list mapped

    def __cinit__(self, wanted, describe, dict collations):
        self.wanted, self.describe, self.collations = wanted, describe, collations
        self.plans = {}
        self.mapped = []

    def __dealloc__(self):
        free(self.numbers.data)

    cdef int add(self, Recorder event, const uint8_t* body, const uint8_t* end, str flavor) except -1:
        """Number of the table in 6 bytes, flags u16, and what `parse_table_map` reads: parsed once for each layout."""
        cdef uint64_t number
        cdef Py_ssize_t size = end - body - 8
        cdef Plan plan = self.recent
        event._need(size, 0, TABLE_MAP)
        if plan is None or PyBytes_GET_SIZE(plan.layout) != size or memcmp(
            PyBytes_AS_STRING(plan.layout), body + 8, size
        ) != 0:
            layout = body[8:end - body]
            plan = self.plans.get(layout)
            if plan is None:
                plan = self.work_out(event, layout, flavor)
                if len(self.plans) >= REMEMBERED:
                    self.plans.clear()
                self.plans[layout] = plan
            self.recent = plan
        number = le(body, 6)
        check(append(&self.numbers, &number, sizeof(number)))
        self.mapped.append(plan)
        return 0

    cdef Plan work_out(self, Recorder event, bytes layout, str flavor):
        try:
            names = names_of(layout)
        except (LookupError, ValueError) as error:
            raise event._corrupt(TABLE_MAP, error) from error
        if self.wanted is not None and not self.wanted(*names):
            return Plan.unwanted(layout)
        try:
            table = parse_table_map(layout, flavor, self.collations)
        except (LookupError, ValueError) as error:
            raise event._corrupt(TABLE_MAP, error) from error
        if self.describe is not None:
            table = table.described_as(self.describe(table))
        return Plan.of(layout, table)

    cdef Plan find(self, uint64_t number):
        """Return the plan of the statement's last table map of this number, or None."""
        cdef const uint64_t* numbers = <const uint64_t*> self.numbers.data
        cdef Py_ssize_t i
        for i in range(self.numbers.size // sizeof(number) - 1, -1, -1):
            if numbers[i] == number:
                return <Plan> self.mapped[i]
        return None

    cdef int forget(self) except -1:
        """The statement, or the file, is at its end."""
        self.numbers.size = 0
        self.mapped.clear()
        return 0

    cdef int ask_again(self) except -1:
        """DDL may have changed what a table map does not say, and `describe` did."""
        if self.describe is not None:
            self.plans.clear()
            self.recent = None
        return 0
