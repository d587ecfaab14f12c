# An event's place in the log, and its record in the output: msgpack in the shape of its class in events.py.

cdef enum:
    ARRAY_HEAD = 5

cdef enum Flag:
    ARTIFICIAL = 0x20
    IGNORABLE = 0x80


cdef class Recorder(Framer):
    """Knows where the event at hand stands, and writes events down."""
    cdef uint32_t time, server_id
    cdef uint64_t start, end
    cdef bytes name              # `file`, encoded
    cdef uint32_t count, images  # events and row images in the output
    cdef size_t good             # where its last complete event ends

    cdef int _enter(self, str file, uint64_t offset) except -1:
        """Go on in a file, or elsewhere in it."""
        self.file, self.offset = file, offset
        self.name = file.encode()
        return 0

    cdef int _find_place(self, int kind, size_t size, uint32_t next_position, uint16_t flags) except -1:
        """Find the event's place in its file. The header has only the lower half of where the next event starts."""
        cdef uint64_t end
        self.start = self.end = self.offset
        if self.from_file:
            self.end = self.offset = self.offset + size
            return 0
        if kind == HEARTBEAT or kind == HEARTBEAT_V2:
            self.start = self.end = self._widened(next_position)
            return 0
        if flags & ARTIFICIAL:
            return 0
        end = self.offset + size
        if next_position == 0:  # MariaDB ≥ 11.4 inside transactions: this is too small by a statement that it left out
            if kind == FORMAT_DESCRIPTION or kind == PREVIOUS_GTIDS or kind == GTID_LIST:  # made up by the server
                return 0
        elif <uint32_t> end != next_position:  # the server left events out
            end = self._widened(next_position)
        self.start, self.end, self.offset = end - size if end > size else 0, end, end
        return 0

    cdef uint64_t _widened(self, uint32_t position) noexcept:
        """Put the upper half of the current offset to a position. It never goes back by a GiB: then it wrapped at 4."""
        cdef uint64_t upper = self.offset & ~<uint64_t> 0xFFFFFFFF
        if self.offset - upper > <uint64_t> position + 0x40000000:
            upper += <uint64_t> 1 << 32
        return upper | position

    cdef tuple _place(self):
        """Return the first fields of the event at hand."""
        return self.time, self.server_id, self.file, self.start, self.end

    cdef str _where(self):
        return f"{self.file}:{self.start}"

    cdef object _corrupt(self, int kind, object error):
        return CorruptEvent(f"{name_of(kind)} event at {self._where()} can't be read: {error}")

    cdef int _need(self, Py_ssize_t size, Py_ssize_t wanted, int kind) except -1:
        if size < wanted:
            raise CorruptEvent(f"{name_of(kind)} event at {self._where()} is truncated")
        return 0

    # --- output ---------------------------------------------------------------------------------------------------

    cdef int _clear(self) except -1:
        """Begin a new output: an array whose length shows in the end."""
        if room(&self.out, ARRAY_HEAD) == NULL:
            raise MemoryError
        self.out.size = self.good = ARRAY_HEAD
        self.count = self.images = 0
        return 0

    cdef bytes _taken(self):
        """Return the complete events of the output as a msgpack array."""
        self.out.data[0] = <char> 0xDD
        put_big32(self.out.data + 1, <uint32_t> self.count)
        return PyBytes_FromStringAndSize(self.out.data, self.good)

    cdef char* _begin(self, int tag, int fields, size_t size) except NULL:
        """Start an event with the fields that all have, and leave room for `size` bytes."""
        cdef char* o = room(&self.out, size + 64 + PyBytes_GET_SIZE(self.name))
        if o == NULL:
            raise MemoryError
        o[0] = <char> (0x90 | (6 + fields))
        o[1] = <char> tag
        o = put_uint(put_uint(o + 2, self.time), self.server_id)
        o = put_str(o, PyBytes_AS_STRING(self.name), PyBytes_GET_SIZE(self.name))
        return put_uint(put_uint(o, self.start), self.end)

    cdef int _complete(self, char* o) noexcept:
        """The event ends here."""
        self.good = self.out.size = o - self.out.data
        self.count += 1
        return 0

    cdef int _emit(self, object event) except -1:
        """Write an event that comes too seldom to be written by hand."""
        cdef bytes encoded = encode_event(event)
        check(append(&self.out, PyBytes_AS_STRING(encoded), PyBytes_GET_SIZE(encoded)))
        return self._complete(self.out.data + self.out.size)
