"""Keeps the current event's position, and writes the output: msgpack in the shape of the classes in events.py."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from databus_binlog.buffer cimport room
from databus_binlog.framing cimport Framer
from databus_binlog.msgpack cimport put_array, put_str, put_uint
from libc.stdint cimport uint16_t, uint32_t, uint64_t

cdef enum HeaderFlag:
    ARTIFICIAL = 0x20
    IGNORABLE = 0x80


cdef class EventWriter(Framer):
    """Keeps the position of the current event, and writes events to the output."""
    cdef uint32_t time, server_id  # of the current event
    cdef uint64_t start, end  # offsets of the current event in the file
    cdef bytes name  # `file`, encoded
    cdef uint32_t count  # events in the output
    cdef uint32_t images  # row images in the output
    cdef size_t complete_size  # size of the output up to its last complete event

    cdef int enter(self, str file, uint64_t offset) except -1
    cdef int locate(self, int kind, size_t size, uint32_t next_position, uint16_t flags) except -1
    cdef uint64_t widened(self, uint32_t position) noexcept
    cdef tuple position(self)
    cdef str where(self)
    cdef object corrupt(self, int kind, object reason)
    cdef object truncated(self, int kind)
    cdef int clear(self) except -1
    cdef bytes take_output(self)
    cdef int emit(self, object event) except -1

    @cython.final
    cdef inline int need(self, Py_ssize_t size, Py_ssize_t wanted, int kind) except -1:
        """Raise CorruptEvent if `size`, the number of the event's unread bytes, is less than `wanted`."""
        if size < wanted:
            raise self.truncated(kind)
        return 0

    @cython.final
    cdef inline char* begin(self, int tag, int fields, size_t size) except NULL:
        """Begin an event of the class with this tag: write the common fields, reserve `size` bytes for the others."""
        cdef char* o = room(&self.out, size + 64 + PyBytes_GET_SIZE(self.name))
        if o == NULL:
            raise MemoryError
        o = put_uint(put_array(o, 6 + fields), tag)
        o = put_uint(put_uint(o, self.time), self.server_id)
        o = put_str(o, PyBytes_AS_STRING(self.name), PyBytes_GET_SIZE(self.name))
        return put_uint(put_uint(o, self.start), self.end)

    @cython.final
    cdef inline int complete(self, char* o) noexcept:
        """End an event, whose last byte is before `o`."""
        self.complete_size = self.out.size = o - self.out.data
        self.count += 1
        return 0
