"""Keeps the current event's position, and writes the output."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from databus_binlog.buffer cimport append
from databus_binlog.faults cimport check
from databus_binlog.msgpack cimport put_array32

from databus_binlog.errors import CorruptEvent
from databus_binlog.event_types import EventType as E, name_of
from databus_binlog.events import encode_event

cdef int FORMAT_DESCRIPTION = E.FORMAT_DESCRIPTION, PREVIOUS_GTIDS = E.PREVIOUS_GTIDS, GTID_LIST = E.GTID_LIST
cdef int HEARTBEAT = E.HEARTBEAT, HEARTBEAT_V2 = E.HEARTBEAT_V2

cdef enum:
    ARRAY_HEAD = 5  # bytes before the first event of an output


cdef class EventWriter(Framer):
    cdef int enter(self, str file, uint64_t offset) except -1:
        """Continue in another file, or elsewhere in the same one."""
        self.file, self.offset = file, offset
        self.name = file.encode()
        return 0

    cdef int locate(self, int kind, size_t size, uint32_t next_position, uint16_t flags) except -1:
        """Set `start`, `end` and `offset`. The header has only the lower 32 bits of the next event's offset."""
        cdef uint64_t end
        self.start = self.end = self.offset
        if self.from_file:
            self.end = self.offset = self.offset + size
            return 0
        if kind == HEARTBEAT or kind == HEARTBEAT_V2:
            self.start = self.end = self.widened(next_position)
            return 0
        if flags & ARTIFICIAL:
            return 0
        end = self.offset + size
        if next_position == 0:
            if kind == FORMAT_DESCRIPTION or kind == PREVIOUS_GTIDS or kind == GTID_LIST:
                return 0  # the server created the event while sending
            # MariaDB ≥ 11.4 writes 0 inside transactions: `end` is too small if the server left out ANNOTATE_ROWS.
        elif <uint32_t> end != next_position:  # the server left out events
            end = self.widened(next_position)
        self.start, self.end, self.offset = end - size if end > size else 0, end, end
        return 0

    cdef uint64_t widened(self, uint32_t position) noexcept:
        """Complete the lower 32 bits of an offset. If they decrease by more than 1 GiB, they have wrapped at 4 GiB."""
        cdef uint64_t upper = self.offset & ~<uint64_t> 0xFFFFFFFF
        if self.offset - upper > <uint64_t> position + 0x40000000:
            upper += <uint64_t> 1 << 32
        return upper | position

    cdef tuple position(self):
        """Return the fields that every event begins with."""
        return self.time, self.server_id, self.file, self.start, self.end

    cdef str where(self):
        return f"{self.file}:{self.start}"

    cdef object corrupt(self, int kind, object reason):
        return CorruptEvent(f"{name_of(kind)} event at {self.where()} can't be read: {reason}")

    cdef object truncated(self, int kind):
        return CorruptEvent(f"{name_of(kind)} event at {self.where()} is truncated")

    cdef int clear(self) except -1:
        """Begin a new output: an array whose length is written last."""
        if room(&self.out, ARRAY_HEAD) == NULL:
            raise MemoryError
        self.out.size = self.complete_size = ARRAY_HEAD
        self.count = self.images = 0
        return 0

    cdef bytes take_output(self):
        """Return the complete events of the output as a msgpack array."""
        put_array32(self.out.data, self.count)
        return PyBytes_FromStringAndSize(self.out.data, self.complete_size)

    cdef int emit(self, object event) except -1:
        """Write an event that is a Python object."""
        cdef bytes encoded = encode_event(event)
        check(append(&self.out, PyBytes_AS_STRING(encoded), PyBytes_GET_SIZE(encoded)))
        self.complete(self.out.data + self.out.size)
        return 0
