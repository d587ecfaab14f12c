"""Checks whether text is well-formed UTF-8."""

from libc.stdint cimport uint8_t

cdef extern from "utf8.hpp" nogil:
    bint is_utf8(const uint8_t* p, Py_ssize_t size)
