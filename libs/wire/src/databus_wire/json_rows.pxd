"""The writer of rows as JSON objects, for compiled code that writes records of packed rows."""

cimport cython
from databus_wire.msgpack_rows cimport Cursor
from databus_wire.output cimport Output
from databus_wire.row_reader cimport Value
from libc.stdint cimport uint8_t


@cython.final
cdef class RowWriter:
    cdef tuple names  # for each column: the member's name as JSON, and a colon
    cdef tuple converts  # for each column: its function; its kind if it has no function
    cdef Py_ssize_t width  # number of columns
    cdef uint8_t* kinds  # for each column: its `Kind`; with the flag `FAST_PATH` if it has both a kind and a function
    cdef Value* current  # the values of the current row
    cdef Value* other  # the values of the row that it is compared with
    cdef Output out

    cdef int load(self, Cursor* rows) except -1
    cdef int load_other(self, Cursor* rows) except -1
    cdef int swap(self) noexcept
    cdef list current_row(self)
    cdef bint differs(self, tuple columns) except -1
    cdef int append_columns(self, tuple columns) except -1
    cdef bint append_object(self, bint changed, bint nulls) except -1
    cdef int append_member(self, Py_ssize_t column, bytes name, bint nulls) except -1
    cdef int require_column(self, Py_ssize_t column) except -1
    cdef int end_object(self) except -1
    cdef bytes member_name(self, str name)
