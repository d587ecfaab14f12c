"""Templates of text, in which what differs between transactions and events are slots."""

cimport cython
from databus_wire.output cimport Output
from databus_wire.rows_writer cimport Rows, Transaction
from libcpp.vector cimport vector


cpdef enum Slot:  # see templates.pyi
    TEXT
    TIME_S
    TIME_MS
    TIME_US
    TIME_NS
    NOW_MS
    NOW_US
    NOW_NS
    ORDINAL
    SERVER_ID
    THREAD
    GTID
    GTID_OR_NULL
    FILE
    START
    POSITION
    XID_MEMBER
    GTID_MEMBER
    THREAD_MEMBER


cdef struct Part:
    Slot slot
    const char* text  # of the slot TEXT; `Template.parts` owns it
    Py_ssize_t size


@cython.final
cdef class Template:
    cdef tuple owned  # the bytes that parts refer to
    cdef vector[Part] parts

    cdef int append_to(self, Output* out, const Transaction* transaction, const Rows* rows) except -1
