# Events cut out of a connection's packets or a file's content, wherever the pieces begin and end.

cdef enum:
    MAGIC_SIZE = 4
    HEADER = 19
    WHOLE_PACKET = 0xFFFFFF   # a packet this long is continued by the next one
    BEGINNING = 64            # bytes that are kept of an event above the limit
    OUTPUT_LIMIT = 4 << 20    # bytes decoded in one go; what is left of the input waits for the next call


cdef class Framer:
    """Gives each event to `_event`, and a compressed transaction to `_payload` in pieces, as they come.

    An event above the limit, of a type that `_is_limited`, goes by: only its beginning is kept, for `_beginning`.

    A packet is: length u24, sequence u8, and in an event's first one status u8 and, in semi-sync, 0xEF and an ack u8.
    """
    cdef readonly object failure   # the error that comes after the events already returned
    cdef readonly bint finished    # the server said that there is no more
    cdef readonly str file
    cdef readonly uint64_t offset  # where the next event starts
    cdef bint from_file
    cdef readonly bint semi_sync   # packets tell whether the server waits for an acknowledgement
    cdef Buffer part               # the beginning of an event whose rest has not come yet, or a server's answer
    cdef Buffer rest               # input that was left when the output had reached its limit
    cdef Buffer out
    cdef uint8_t[8] intro          # the beginning of a packet, up to where an event's bytes start
    cdef int intro_size
    cdef size_t left               # bytes of the packet that have not come yet
    cdef bint in_packet, continued, answer, ack_wanted
    cdef bint paused               # the next event is to wait for the next call
    cdef size_t payload_left       # bytes of a compressed transaction's event that have not come yet
    cdef size_t limit              # bytes of the largest event that is kept whole
    cdef size_t skip_left          # bytes of a larger one that have not come yet; its beginning is in `part`

    def __dealloc__(self):
        free(self.part.data)
        free(self.rest.data)
        free(self.out.data)

    @property
    def pending(self):
        """Whether an event has begun whose rest has not been fed yet."""
        return self.in_packet or self.intro_size > 0 or self.part.size > 0 or self.payload_left > 0

    @property
    def more(self):
        """Whether input is left from the last call, or a pause to end: call again, with or without new data."""
        return (self.rest.size > 0 or self.paused) and self.failure is None

    @property
    def drained(self):
        """Whether no input is left from the last call."""
        return self.rest.size == 0

    cdef int _event(self, const uint8_t* p, size_t size) except -1:
        return 0

    cdef int _begin_payload(self, const uint8_t* header, size_t size) except -1:
        return 0

    cdef int _payload(self, const uint8_t* p, size_t size) except -1:
        return 0

    cdef bint _is_limited(self, const uint8_t* header, size_t size) except -1:
        return False

    cdef int _skip(self, const uint8_t* p, size_t size) except -1:
        return 0

    cdef int _beginning(self, const uint8_t* p, size_t size, size_t whole) except -1:
        return 0

    cdef int _frame(self, const uint8_t* data, size_t size) except -1:
        """Go through what is left and what is new, until the output is large enough."""
        cdef size_t done
        self.paused = False
        if self.rest.size == 0 and size == 0:
            return 0
        if self.rest.size:
            check(append(&self.rest, data, size))
            done = self._pieces(<uint8_t*> self.rest.data, self.rest.size)
            self.rest.size -= done
            memmove(self.rest.data, self.rest.data + done, self.rest.size)
        else:
            done = self._pieces(data, size)
            check(append(&self.rest, data + done, size - done))
        return 0

    cdef Py_ssize_t _pieces(self, const uint8_t* p, size_t size) except -1:
        """Return how many bytes were used."""
        if self.from_file:
            return self._file(p, size)
        return self._packets(p, size)

    # --- connection -----------------------------------------------------------------------------------------------

    cdef Py_ssize_t _packets(self, const uint8_t* p, size_t size) except -1:
        cdef const uint8_t* first = p
        cdef const uint8_t* end = p + size
        cdef size_t piece, done
        while p < end or (self.in_packet and self.left == 0):
            if not self.in_packet:
                done = self._whole(p, end)
                if done == 0:
                    p = self._open(p, end)
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
                done = self._events(p, piece, &self.part)
            p += done
            self.left -= done
            if self.left == 0:
                self._close()
            if self.paused or self.out.size >= OUTPUT_LIMIT:
                break
        return p - first

    cdef Py_ssize_t _whole(self, const uint8_t* p, const uint8_t* end) except -1:
        """Take the short way with a packet that is all there and is just one event; return its size, 0 for others."""
        cdef size_t length
        if end - p < 5 + HEADER or self.intro_size or self.continued or self.semi_sync or self.part.size:
            return 0
        length = le(p, 3)
        if p[4] != 0 or length <= HEADER or length == WHOLE_PACKET or length > <size_t> (end - p - 4):
            return 0
        if le(p + 14, 4) != length - 1 or p[9] == TRANSACTION_PAYLOAD or length > self.limit:
            return 0
        self._event(p + 5, length - 1)
        return length + 4

    cdef int _head_size(self) noexcept:
        """Return how many bytes stand before an event's, as far as those that have come tell."""
        if self.continued:
            return 4
        return 7 if self.semi_sync and self.intro_size >= 5 and self.intro[4] == 0 else 5

    cdef const uint8_t* _open(self, const uint8_t* p, const uint8_t* end) except NULL:
        """Read what stands before an event's bytes; it may come in pieces, too."""
        cdef size_t length
        cdef int needed = self._head_size()
        while self.intro_size < needed:
            if p == end:
                return p
            self.intro[self.intro_size] = p[0]
            self.intro_size += 1
            p += 1
            needed = self._head_size()
        length = le(self.intro, 3)
        if length < <size_t> (needed - 4):
            raise CorruptEvent(f"a packet of {length} bytes after {self.file}:{self.offset}")
        self.intro_size = 0
        self.in_packet = True
        self.left = length - (needed - 4)
        if not self.continued:
            self.answer = self.intro[4] != 0
            self.ack_wanted = needed == 7 and self.intro[6] == 1
            if self.answer and self.intro[4] != 0xFF and (self.intro[4] != 0xFE or length >= 9):
                raise CorruptEvent(f"a packet with status {self.intro[4]} after {self.file}:{self.offset}")
        self.continued = length == WHOLE_PACKET
        return p

    cdef int _close(self) except -1:
        """A packet is complete: so must be its event or answer, unless another packet continues it."""
        self.in_packet = False
        if self.continued:
            return 0
        if not self.answer:
            if self.part.size or self.payload_left:
                raise CorruptEvent(f"an event is cut off after {self.file}:{self.offset}; read from there again")
            return 0
        if self.intro[4] == 0xFE:
            self.finished = True
        else:
            answer = self.part.data[:self.part.size]
            text = answer[8:] if answer[2:3] == b"#" else answer[2:]
            raise from_server(int.from_bytes(answer[:2], "little"), text.decode("utf-8", "replace"))
        self.part.size = 0
        return 0

    # --- file -----------------------------------------------------------------------------------------------------

    cdef Py_ssize_t _file(self, const uint8_t* p, size_t size) except -1:
        """Four bytes of magic, then events."""
        cdef const uint8_t* first = p
        if self.offset < MAGIC_SIZE:
            p = complete(&self.part, p, first + size, MAGIC_SIZE)
            if self.part.size < MAGIC_SIZE:
                return size
            if memcmp(self.part.data, b"\xfebin", MAGIC_SIZE) != 0:
                kind = "an encrypted" if memcmp(self.part.data, b"\xfdbin", MAGIC_SIZE) == 0 else "no"
                raise CorruptEvent(f"{self.file or 'this'} is {kind} binlog file; read it through the server")
            self.part.size = 0
            self.offset = MAGIC_SIZE
        return p - first + self._events(p, first + size - p, &self.part)

    # --- events ---------------------------------------------------------------------------------------------------

    cdef Py_ssize_t _events(self, const uint8_t* p, size_t size, Buffer* part) except -1:
        """Cut events by the size in their headers; one that is not complete waits in `part`. Return the bytes used."""
        cdef const uint8_t* first = p
        cdef const uint8_t* end = p + size
        cdef const uint8_t* header
        cdef size_t length
        cdef bint inner = part != &self.part  # events of a compressed transaction, which has no rest to wait in
        while p < end and (inner or not self.paused and self.out.size < OUTPUT_LIMIT):
            if self.payload_left and not inner:
                length = min(self.payload_left, min(<size_t> (end - p), <size_t> PIECE))
                self.payload_left -= length
                self._payload(p, length)
                p += length
                continue
            if self.skip_left:
                p += self._go_by(p, end - p, part)
                continue
            header = p
            if part.size or end - p < HEADER:
                p = complete(part, p, end, HEADER)
                if part.size < HEADER:
                    break
                header = <uint8_t*> part.data
            length = le(header + 9, 4)
            if length < HEADER:
                raise CorruptEvent(f"an event of {length} bytes at {self.file}:{self.offset}; read from there again")
            if header[4] == TRANSACTION_PAYLOAD and not inner:
                self.payload_left = length - HEADER
                self._begin_payload(header, length)
                p = p + HEADER if header == p else p
                part.size = 0
                continue
            if length > self.limit and part.size <= HEADER and self._is_limited(header, length):
                p = complete(part, p, end, HEADER)
                self.skip_left = length - HEADER
                continue
            if header == p and length <= <size_t> (end - p):
                self._event(p, length)
                p += length
                continue
            p = complete(part, p, end, length)
            if part.size < length:
                break
            part.size = 0
            self._event(<uint8_t*> part.data, length)
            trim(part)
        return p - first

    cdef Py_ssize_t _go_by(self, const uint8_t* p, size_t size, Buffer* part) except -1:
        """Let the next bytes of an event above the limit go by; return how many they were."""
        cdef size_t beginning
        size = min(size, self.skip_left)
        complete(part, p, p + size, BEGINNING)
        self._skip(p, size)
        self.skip_left -= size
        if self.skip_left == 0:
            beginning, part.size = part.size, 0
            self._beginning(<const uint8_t*> part.data, beginning, le(<const uint8_t*> part.data + 9, 4))
        return size


cdef const uint8_t* complete(Buffer* part, const uint8_t* p, const uint8_t* end, size_t size) except NULL:
    """Move bytes to `part` until it has `size` of them or there are no more; return where the next ones are."""
    cdef size_t count
    if part.size < size:
        count = min(<size_t> (end - p), size - part.size)
        check(append(part, p, count))
        p += count
    return p
