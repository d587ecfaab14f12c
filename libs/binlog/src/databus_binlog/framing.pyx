"""Cuts events out of packets and files.

A packet is: length u24, sequence u8, status u8, and an event; in a semi-synchronous session, a byte 0xEF and an
acknowledgement flag u8 precede the event. An event of 16 MiB or more continues in packets that have only length and
sequence before its bytes. A packet whose status is not EVENT has the server's answer instead: the end of the log, or an
error.

A file is a magic number of four bytes, and then events.
"""

from databus_binlog.buffer cimport append, trim
from databus_binlog.byte_order cimport le
from databus_binlog.faults cimport check
from libc.stdlib cimport free
from libc.string cimport memcmp, memmove

from databus_binlog.errors import CorruptEvent, from_server
from databus_binlog.event_types import EventType as E
from databus_binlog.payload import PIECE as PAYLOAD_PIECE

cdef int TRANSACTION_PAYLOAD = E.TRANSACTION_PAYLOAD
cdef size_t PIECE = PAYLOAD_PIECE

cdef enum:
    LONGEST_PACKET = 0xFFFFFF  # a packet of this length continues in the next one
    KEPT_OF_SKIPPED = 64  # first bytes of a skipped event that are kept: enough to find its table
    OUTPUT_LIMIT = 4 << 20  # bytes of output after which the rest of the input waits for the next call

cdef enum Status:
    EVENT = 0
    END_OF_LOG = 0xFE
    ERROR = 0xFF


cdef class Framer:
    def __dealloc__(self):
        free(self.part.data)
        free(self.rest.data)
        free(self.out.data)

    @property
    def pending(self):
        """Whether an event is incomplete."""
        return self.in_packet or self.head_size > 0 or self.part.size > 0 or self.payload_left > 0

    @property
    def more(self):
        """Whether to call again, with or without new data: the last call left input unread, or it paused."""
        return (self.rest.size > 0 or self.paused) and self.failure is None

    @property
    def drained(self):
        """Whether the last call left no input unread."""
        return self.rest.size == 0

    cdef int event(self, const uint8_t* p, size_t size) except -1:
        """Decode a complete event."""
        return 0

    cdef int begin_payload(self, const uint8_t* header, size_t size) except -1:
        """Begin a compressed transaction, an event of `size` bytes."""
        return 0

    cdef int payload(self, const uint8_t* p, size_t size) except -1:
        """Decode the next bytes of a compressed transaction."""
        return 0

    cdef bint may_skip(self, const uint8_t* header, size_t size) except -1:
        """Return whether an event above the limit may be skipped."""
        return False

    cdef int read_skipped(self, const uint8_t* p, size_t size) except -1:
        """Process the next bytes of a skipped event, without its header."""
        return 0

    cdef int end_skipped(self, const uint8_t* p, size_t kept, size_t size) except -1:
        """Process the end of a skipped event of `size` bytes; its first `kept` bytes are at `p`."""
        return 0

    cdef int frame(self, const uint8_t* data, size_t size) except -1:
        """Read the rest of the last input and then `data`, until the output reaches its limit or `paused` is set."""
        cdef size_t done
        self.paused = False
        if self.rest.size == 0 and size == 0:
            return 0
        if self.rest.size:
            check(append(&self.rest, data, size))
            done = self.read_input(<uint8_t*> self.rest.data, self.rest.size)
            self.rest.size -= done
            memmove(self.rest.data, self.rest.data + done, self.rest.size)
        else:
            done = self.read_input(data, size)
            check(append(&self.rest, data + done, size - done))
        return 0

    cdef Py_ssize_t read_input(self, const uint8_t* p, size_t size) except -1:
        """Read packets or a file's content until the output's limit or a pause. Return the number of bytes read."""
        if self.from_file:
            return self.read_file(p, size)
        return self.read_packets(p, size)

    # --- connection ---------------------------------------------------------------------------------------------------

    cdef Py_ssize_t read_packets(self, const uint8_t* p, size_t size) except -1:
        cdef const uint8_t* first = p
        cdef const uint8_t* end = p + size
        cdef size_t piece, done
        while p < end or (self.in_packet and self.left == 0):
            if not self.in_packet:
                done = self.read_whole_packet(p, end)
                if done == 0:
                    p = self.read_head(p, end)
                    continue
                p += done
                if self.paused or self.out.size >= OUTPUT_LIMIT:
                    break
                continue
            piece = min(self.left, <size_t> (end - p))
            if self.answer:
                check(append(&self.part, p, piece))
                done = piece
            else:
                done = self.events(p, piece, &self.part)
            p += done
            self.left -= done
            if self.left == 0:
                self.end_packet()
            if self.paused or self.out.size >= OUTPUT_LIMIT:
                break
        return p - first

    cdef Py_ssize_t read_whole_packet(self, const uint8_t* p, const uint8_t* end) except -1:
        """Fast path: read a packet with one complete, ordinary event. Return its size, or 0 for any other packet."""
        cdef size_t length
        if end - p < 5 + HEADER or self.head_size or self.continued or self.semi_sync or self.part.size:
            return 0
        length = le(p, 3)
        if p[4] != EVENT or length <= HEADER or length == LONGEST_PACKET or length > <size_t> (end - p - 4):
            return 0
        if le(p + 14, 4) != length - 1 or p[9] == TRANSACTION_PAYLOAD or length > self.limit:
            return 0
        self.event(p + 5, length - 1)
        return length + 4

    cdef int head_length(self) noexcept:
        """Return how many bytes of a packet precede its event or answer, as far as the bytes in `head` show it."""
        if self.continued:
            return 4
        return 7 if self.semi_sync and self.head_size >= 5 and self.head[4] == EVENT else 5

    cdef const uint8_t* read_head(self, const uint8_t* p, const uint8_t* end) except NULL:
        """Read into `head`, which the input may leave incomplete. Return the position after the bytes read."""
        cdef size_t length
        cdef int needed = self.head_length()
        while self.head_size < needed:
            if p == end:
                return p
            self.head[self.head_size] = p[0]
            self.head_size += 1
            p += 1
            needed = self.head_length()
        length = le(self.head, 3)
        if length < <size_t> (needed - 4):
            raise CorruptEvent(
                f"a packet of only {length} bytes after the event that ends at {self.file}:{self.offset};"
                " check the network"
            )
        self.head_size = 0
        self.in_packet = True
        self.left = length - (needed - 4)
        if not self.continued:
            self.answer = self.head[4] != EVENT
            self.ack_wanted = needed == 7 and self.head[6] == 1
            if self.answer and self.head[4] != ERROR and (self.head[4] != END_OF_LOG or length >= 9):
                raise CorruptEvent(
                    f"a packet with unknown status {self.head[4]} after the event that ends at"
                    f" {self.file}:{self.offset}; check the network"
                )
        self.continued = length == LONGEST_PACKET
        return p

    cdef int end_packet(self) except -1:
        """Check that the packet's event is complete, unless the next packet continues it. Raises the server's error."""
        self.in_packet = False
        if self.continued:
            return 0
        if not self.answer:
            if self.part.size or self.payload_left:
                raise CorruptEvent(f"an event is cut off after {self.file}:{self.offset}; read from there again")
            return 0
        if self.head[4] == END_OF_LOG:
            self.finished = True
        else:
            answer = self.part.data[:self.part.size]
            text = answer[8:] if answer[2:3] == b"#" else answer[2:]
            raise from_server(int.from_bytes(answer[:2], "little"), text.decode("utf-8", "replace"))
        self.part.size = 0
        return 0

    # --- file ---------------------------------------------------------------------------------------------------------

    cdef Py_ssize_t read_file(self, const uint8_t* p, size_t size) except -1:
        cdef const uint8_t* first = p
        if self.offset < MAGIC_SIZE:
            p = fill(&self.part, p, first + size, MAGIC_SIZE)
            if self.part.size < MAGIC_SIZE:
                return size
            if memcmp(self.part.data, b"\xfebin", MAGIC_SIZE) != 0:
                if memcmp(self.part.data, b"\xfdbin", MAGIC_SIZE) == 0:
                    raise CorruptEvent(
                        f"{self.file or 'the input'} is an encrypted binlog file; read it through the server"
                    )
                raise CorruptEvent(
                    f"{self.file or 'the input'} is not a binlog file: it does not start with the magic number"
                )
            self.part.size = 0
            self.offset = MAGIC_SIZE
        return p - first + self.events(p, first + size - p, &self.part)

    # --- events -------------------------------------------------------------------------------------------------------

    cdef Py_ssize_t events(self, const uint8_t* p, size_t size, Buffer* part) except -1:
        """Cut out events, whose headers give their sizes; keep an incomplete event in `part`."""
        cdef const uint8_t* first = p
        cdef const uint8_t* end = p + size
        cdef const uint8_t* header
        cdef size_t length
        cdef bint inner = part != &self.part  # in a compressed transaction: inflated bytes can't wait for the next call
        while p < end and (inner or not self.paused and self.out.size < OUTPUT_LIMIT):
            if self.payload_left and not inner:
                length = min(self.payload_left, min(<size_t> (end - p), <size_t> PIECE))
                self.payload_left -= length
                self.payload(p, length)
                p += length
                continue
            if self.skip_left:
                p += self.skip(p, end - p, part)
                continue
            header = p
            if part.size or end - p < HEADER:
                p = fill(part, p, end, HEADER)
                if part.size < HEADER:
                    break
                header = <uint8_t*> part.data
            length = le(header + 9, 4)
            if length < HEADER:
                raise CorruptEvent(
                    f"an event of only {length} bytes at {self.file}:{self.offset}; read from there again"
                )
            if header[4] == TRANSACTION_PAYLOAD and not inner:
                self.payload_left = length - HEADER
                self.begin_payload(header, length)
                p = p + HEADER if header == p else p
                part.size = 0
                continue
            if length > self.limit and part.size <= HEADER and self.may_skip(header, length):
                p = fill(part, p, end, HEADER)
                self.skip_left = length - HEADER
                continue
            if header == p and length <= <size_t> (end - p):
                self.event(p, length)
                p += length
                continue
            p = fill(part, p, end, length)
            if part.size < length:
                break
            part.size = 0
            self.event(<uint8_t*> part.data, length)
            trim(part)
        return p - first

    cdef Py_ssize_t skip(self, const uint8_t* p, size_t size, Buffer* part) except -1:
        """Skip the next bytes of an event above the limit."""
        cdef size_t kept
        size = min(size, self.skip_left)
        fill(part, p, p + size, KEPT_OF_SKIPPED)
        self.read_skipped(p, size)
        self.skip_left -= size
        if self.skip_left == 0:
            kept, part.size = part.size, 0
            self.end_skipped(<const uint8_t*> part.data, kept, le(<const uint8_t*> part.data + 9, 4))
        return size


cdef const uint8_t* fill(Buffer* part, const uint8_t* p, const uint8_t* end, size_t size) except NULL:
    """Append bytes to `part` until it has `size` of them or the input ends; return the position after them."""
    cdef size_t count
    if part.size < size:
        count = min(<size_t> (end - p), size - part.size)
        check(append(part, p, count))
        p += count
    return p
