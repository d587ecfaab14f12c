"""A text that grows while it is written, and is then returned as bytes."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.string cimport memcpy

cdef enum:
    INITIAL_CAPACITY = 4096  # bytes
    MAX_KEPT_CAPACITY = 64 << 10  # bytes: larger memory is freed after a text: there are as many writers as tables


cdef struct Output:  # zeroed memory is an empty text
    char* data
    size_t size  # bytes of text
    size_t capacity  # bytes of memory


cdef inline char* room(Output* out, size_t size) except NULL:
    """Return a pointer to write the next `size` bytes to. Pointers that were returned before may become invalid."""
    if out.data == NULL or out.size + size > out.capacity:
        grow(out, out.size + size)
    return out.data + out.size


cdef inline int grow(Output* out, size_t size) except -1:
    cdef size_t capacity = max(<size_t> INITIAL_CAPACITY, out.capacity)
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
    """Set the end of the text, after the caller has written up to `end`."""
    out.size = end - out.data
    return 0


cdef inline int clear(Output* out) noexcept:
    """Begin a new text; release the memory of the last one if it is large."""
    out.size = 0
    if out.capacity > MAX_KEPT_CAPACITY:
        PyMem_Free(out.data)
        out.data, out.capacity = <char*> NULL, 0
    return 0


cdef inline bytes take_text(Output* out):
    """Return the text, and release its memory if that is large."""
    cdef bytes text = PyBytes_FromStringAndSize(out.data, out.size)
    clear(out)
    return text
