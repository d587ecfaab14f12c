"""Packed rows as a sequence of lists, made when they are needed."""

cimport cython


@cython.final
@cython.no_gc
cdef class PackedRows:
    cdef readonly object packed
    cdef Py_ssize_t count
    cdef list rows
