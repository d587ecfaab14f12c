"""Packed rows as a sequence of lists, which are made on first access."""

cimport cython


@cython.final
@cython.no_gc
cdef class PackedRows:
    cdef readonly object packed
    cdef Py_ssize_t length
    cdef list rows  # None until the first access
