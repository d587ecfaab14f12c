"""A growing byte buffer that is reused from event to event."""

from databus_binlog.faults cimport Fault
from libc.stdlib cimport realloc
from libc.string cimport memcpy

cdef enum:
    KEPT = 4 << 20  # bytes of memory that a buffer keeps at most for the next events


cdef struct Buffer:  # with all its bytes zero, it is an empty buffer
    char* data
    size_t size
    size_t capacity


cdef inline char* room(Buffer* buffer, size_t size) noexcept nogil:
    """Return where to write the next `size` bytes; NULL if there is no memory. Invalidates pointers into the buffer."""
    cdef size_t capacity
    cdef char* data
    if buffer.size + size > buffer.capacity:
        capacity = max(<size_t> 65536, buffer.capacity)
        while capacity < buffer.size + size:
            capacity *= 2
        data = <char*> realloc(buffer.data, capacity)
        if data == NULL:
            return NULL
        buffer.data = data
        buffer.capacity = capacity
    return buffer.data + buffer.size


cdef inline Fault append(Buffer* buffer, const void* data, size_t size) noexcept nogil:
    cdef char* o
    if size == 0:  # room() returns NULL if nothing was ever reserved, which is not a lack of memory
        return Fault.NONE
    o = room(buffer, size)
    if o == NULL:
        return Fault.NO_MEMORY
    memcpy(o, data, size)
    buffer.size += size
    return Fault.NONE


cdef inline void trim(Buffer* buffer) noexcept nogil:
    """Release the memory above `KEPT`, which a large event took, unless the buffer still uses it."""
    cdef char* data
    if buffer.capacity > KEPT and buffer.size <= KEPT:
        data = <char*> realloc(buffer.data, KEPT)
        if data != NULL:
            buffer.data, buffer.capacity = data, KEPT
