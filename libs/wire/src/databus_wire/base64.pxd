"""Bytes as base64, with padding and without line breaks."""

from libc.stdint cimport uint8_t

cdef extern from "base64.hpp" nogil:
    char* put_base64(const uint8_t* p, Py_ssize_t size, char* o)


cdef inline Py_ssize_t base64_size(Py_ssize_t size) noexcept nogil:
    """Return how many digits `size` bytes need."""
    return (size + 2) // 3 * 4
