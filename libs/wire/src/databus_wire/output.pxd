"""A growing text, which is written piece by piece and then returned as bytes."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.string cimport memcpy

cdef enum:
    FIRST = 4096  # bytes of memory for a new text
    KEPT = 64 << 10  # bytes of memory kept for the next text: every table's writer has one


cdef struct Output:  # all zero bytes: an empty one
    char* data
    size_t size
    size_t capacity


cdef inline char* room(Output* out, size_t size) except NULL:
    """Return where to write the next `size` bytes. Invalidates earlier pointers."""
    if out.data == NULL or out.size + size > out.capacity:
        grow(out, out.size + size)
    return out.data + out.size


cdef inline int grow(Output* out, size_t size) except -1:
    cdef size_t capacity = max(<size_t> FIRST, out.capacity)
    cdef char* data
    while capacity < size:
        capacity *= 2
    data = <char*> PyMem_Realloc(out.data, capacity)
    if data == NULL:
        raise MemoryError
    out.data, out.capacity = data, capacity
    return 0


cdef inline int append(Output* out, const char* text, size_t size) except -1:
    memcpy(room(out, size), text, size)
    out.size += size
    return 0


cdef inline int append_bytes(Output* out, bytes text) except -1:
    return append(out, PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))


cdef inline int end_at(Output* out, const char* end) noexcept:
    """Count what was written, up to `end`, as output."""
    out.size = end - out.data
    return 0


cdef inline bytes taken(Output* out):
    """Return the text, and release the memory of a long one."""
    cdef bytes text = PyBytes_FromStringAndSize(out.data, out.size)
    if out.capacity > KEPT:
        PyMem_Free(out.data)
        out.data, out.capacity = <char*> NULL, 0
    return text
