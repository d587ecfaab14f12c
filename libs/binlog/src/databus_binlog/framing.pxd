"""Cuts events out of a connection's packets or a file's content, which arrive in chunks of any size."""

from databus_binlog.buffer cimport Buffer
from libc.stdint cimport uint8_t, uint64_t

cdef enum:
    MAGIC_SIZE = 4  # bytes at the start of a file
    HEADER = 19  # bytes of an event's header


cdef class Framer:
    """Passes each event to `event`, and a compressed transaction to `payload` piece by piece.

    Events larger than `limit` are skipped if `may_skip` allows it: only the first bytes are kept, for `end_skipped`.
    """
    cdef readonly object failure  # the error to raise after the events that were already returned
    cdef readonly bint finished  # the server sent the end of the log
    cdef readonly str file
    cdef readonly uint64_t offset  # of the next event in the file
    cdef bint from_file  # the input is a file's content, not a connection's packets
    cdef readonly bint semi_sync  # packets show whether the server expects an acknowledgement
    cdef Buffer part  # the bytes so far of an incomplete event, or of an answer (see `answer`)
    cdef Buffer rest  # input that the last call left unread
    cdef Buffer out
    cdef uint8_t[8] head  # a packet's bytes before those of an event or answer
    cdef int head_size  # bytes in `head`
    cdef size_t left  # bytes of the packet that have not been read yet
    cdef bint in_packet  # `head` is complete, the packet is not
    cdef bint continued  # the next packet continues this one
    cdef bint answer  # the packet has no event, but the end of the log or an error
    cdef bint ack_wanted  # the server expects an acknowledgement of the packet's event
    cdef bint paused  # the next event is left for the next call
    cdef size_t payload_left  # bytes of a compressed transaction that have not been read yet
    cdef size_t limit  # bytes; larger events are skipped if `may_skip` allows it
    cdef size_t skip_left  # bytes of a skipped event that have not been read yet

    # The Decoder overrides these.
    cdef int event(self, const uint8_t* p, size_t size) except -1
    cdef int begin_payload(self, const uint8_t* header, size_t size) except -1
    cdef int payload(self, const uint8_t* p, size_t size) except -1
    cdef bint may_skip(self, const uint8_t* header, size_t size) except -1
    cdef int read_skipped(self, const uint8_t* p, size_t size) except -1
    cdef int end_skipped(self, const uint8_t* p, size_t kept, size_t size) except -1

    cdef int frame(self, const uint8_t* data, size_t size) except -1
    cdef Py_ssize_t events(self, const uint8_t* p, size_t size, Buffer* part) except -1

    cdef Py_ssize_t read_input(self, const uint8_t* p, size_t size) except -1
    cdef Py_ssize_t read_packets(self, const uint8_t* p, size_t size) except -1
    cdef Py_ssize_t read_whole_packet(self, const uint8_t* p, const uint8_t* end) except -1
    cdef int head_length(self) noexcept
    cdef const uint8_t* read_head(self, const uint8_t* p, const uint8_t* end) except NULL
    cdef int end_packet(self) except -1
    cdef Py_ssize_t read_file(self, const uint8_t* p, size_t size) except -1
    cdef Py_ssize_t skip(self, const uint8_t* p, size_t size, Buffer* part) except -1
