"""Cuts events out of a connection's packets or a file's content, whatever the sizes of the chunks."""

from databus_binlog.buffer cimport Buffer
from libc.stdint cimport uint8_t, uint64_t

cdef enum:
    MAGIC_SIZE = 4  # bytes at the start of a file
    HEADER = 19  # bytes of an event's header


cdef class Framer:
    """Passes each event to `event`, and a compressed transaction to `payload` piece by piece.

    Events larger than `limit` that `may_skip` allows are skipped: only the first bytes are kept, for `skipped`.
    """
    cdef readonly object failure  # the error to raise after the events that were already returned
    cdef readonly bint finished  # the server said that the log ends here
    cdef readonly str file
    cdef readonly uint64_t offset  # of the next event in the file
    cdef bint from_file
    cdef readonly bint semi_sync  # packets say whether the server expects an acknowledgement
    cdef Buffer part  # of an incomplete event, or of the server's answer
    cdef Buffer rest  # input that was left when the output reached its limit
    cdef Buffer out
    cdef uint8_t[8] head  # of a packet, before the bytes of an event
    cdef int head_size
    cdef size_t left  # bytes of the packet that have not arrived yet
    cdef bint in_packet, continued, answer, ack_wanted
    cdef bint paused  # the next event is for the next call
    cdef size_t payload_left  # bytes of a compressed transaction that have not arrived yet
    cdef size_t limit  # bytes of the largest event that is kept
    cdef size_t skip_left  # bytes of a larger event that have not arrived yet; its first ones are in `part`

    # The decoder of the events overrides these.
    cdef int event(self, const uint8_t* p, size_t size) except -1
    cdef int begin_payload(self, const uint8_t* header, size_t size) except -1
    cdef int payload(self, const uint8_t* p, size_t size) except -1
    cdef bint may_skip(self, const uint8_t* header, size_t size) except -1
    cdef int skipping(self, const uint8_t* p, size_t size) except -1
    cdef int skipped(self, const uint8_t* p, size_t kept, size_t size) except -1

    cdef int frame(self, const uint8_t* data, size_t size) except -1
    cdef Py_ssize_t events(self, const uint8_t* p, size_t size, Buffer* part) except -1

    cdef Py_ssize_t read_pieces(self, const uint8_t* p, size_t size) except -1
    cdef Py_ssize_t read_packets(self, const uint8_t* p, size_t size) except -1
    cdef Py_ssize_t read_whole_packet(self, const uint8_t* p, const uint8_t* end) except -1
    cdef int wanted_head(self) noexcept
    cdef const uint8_t* read_head(self, const uint8_t* p, const uint8_t* end) except NULL
    cdef int end_packet(self) except -1
    cdef Py_ssize_t read_file(self, const uint8_t* p, size_t size) except -1
    cdef Py_ssize_t skip(self, const uint8_t* p, size_t size, Buffer* part) except -1
