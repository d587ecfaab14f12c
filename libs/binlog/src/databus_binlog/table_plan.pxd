"""How to read the rows of a table, computed once for each layout of a table map."""

from databus_binlog.columns cimport Column
from libc.stdint cimport uint32_t, uint64_t


cdef class TablePlan:
    cdef bytes layout  # the body of the table map after the table's number and flags
    cdef object table  # TableMap; None if the table is not wanted
    cdef bytes fingerprint
    cdef str name  # schema.name
    cdef type error_class  # of the error to raise for rows of the table, if they can't be decoded
    cdef str error_message
    cdef list references  # keeps the objects alive that the columns point to
    cdef Column* columns
    cdef uint32_t count  # columns, without the hidden ones
    cdef uint32_t hidden  # hidden columns, which come last
    cdef uint32_t json_columns
    cdef uint64_t used  # number of the last output with rows of this table

    @staticmethod
    cdef TablePlan unwanted(bytes layout)

    @staticmethod
    cdef TablePlan of(bytes layout, object table)

    cdef int lay_out(self, Column* c, object column) except -1
    cdef int lay_out_time(self, Column* c, int code, int digits) except -1
    cdef int lay_out_string(self, Column* c, object column, uint32_t prefix, uint32_t width) except -1
