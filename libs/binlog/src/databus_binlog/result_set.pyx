"""Cuts the answer to a SELECT out of packets (text protocol), and packs its rows.

The packets are: the number of columns, a definition for each column, an EOF packet unless the connection has
CLIENT_DEPRECATE_EOF, the rows, and an EOF or OK packet. An error may replace any packet and ends the result set. A
packet is: length u24, sequence u8, payload; a payload of 16 MiB or more continues in the next packet. A value is its
text after its size, a length-encoded integer; NULL is one byte.
https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_query_response_text_resultset.html
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from databus_binlog.buffer cimport Buffer, append, room, trim
from databus_binlog.byte_order cimport le
from databus_binlog.faults cimport check
from databus_binlog.msgpack cimport Head, put_array, put_array32, put_bin, put_nil
from databus_binlog.number_text cimport put_digits, put_float
from libc.stdint cimport UINT32_MAX, uint8_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from databus_binlog.errors import CorruptResult
from databus_binlog.row_batch import RowBatch


cdef extern from * nogil:
    """
    #include <charconv>
    #include <cmath>
    static inline bool read_double(const uint8_t* p, const uint8_t* end, double* value) {
        auto found = std::from_chars((const char*) p, (const char*) end, *value);
        return found.ec == std::errc() && found.ptr == (const char*) end && std::isfinite(*value); }
    """
    bint read_double(const uint8_t* p, const uint8_t* end, double* value)

cdef enum:
    LONGEST_PACKET = 0xFFFFFF  # a packet of this length continues in the next one
    LONGEST_EOF = 8  # bytes
    MOST_COLUMNS = 0xFFFF  # servers allow 4096
    ARRAY_HEAD = 5  # bytes at the start of a batch for the number of its rows
    WIDEST_NUMBER = 64  # bytes of a converted value, with its header
    MORE_RESULTS = 8  # SERVER_MORE_RESULTS_EXISTS

cdef enum First:  # the first byte of a packet or a value
    NULL_VALUE = 0xFB
    SIZE_16 = 0xFC
    SIZE_24 = 0xFD
    SIZE_64 = 0xFE  # of a packet: EOF, or OK at the end of the rows
    ERROR = 0xFF

cdef enum Expected:
    COLUMN_COUNT
    DEFINITION
    END_OF_DEFINITIONS
    ROW
    NOTHING

cdef enum Convert:  # the values of Conversion
    FLOAT = 1
    DOUBLE = 2
    YEAR2 = 3


@cython.final
cdef class ResultSet:
    cdef readonly bint complete
    cdef readonly object refusal
    cdef bytes conversions  # one byte for each column; None: no conversions
    cdef size_t batch
    cdef bint deprecate_eof
    cdef size_t longest_end  # bytes; a longer packet that begins like EOF or OK is a row
    cdef Expected expected
    cdef size_t columns
    cdef size_t definitions  # that have not been read yet
    cdef uint8_t[4] head  # of a packet
    cdef int head_size  # bytes in `head`
    cdef uint8_t sequence  # of the next packet
    cdef bint out_of_sequence  # a packet of the current payload
    cdef bint in_packet  # `head` is complete, the packet is not
    cdef size_t left  # bytes of the packet that have not been read yet
    cdef bint continued  # the next packet continues the payload
    cdef Buffer part  # the bytes so far of an incomplete payload
    cdef Buffer out  # the next batch
    cdef size_t count  # rows in `out`
    cdef size_t size  # bytes of cell data in `out`
    cdef list batches

    def __init__(self, conversions=(), *, Py_ssize_t batch, bint deprecate_eof):
        self.conversions = bytes(conversions) if any(conversions) else None
        self.columns = len(conversions)  # 0: not known yet
        self.batch = batch
        self.deprecate_eof = deprecate_eof
        self.longest_end = LONGEST_PACKET - 1 if deprecate_eof else LONGEST_EOF
        self.sequence = 1
        self.begin_batch()

    def __dealloc__(self):
        free(self.part.data)
        free(self.out.data)

    def feed(self, data, Py_ssize_t size=-1):
        """See result_set.pyi."""
        cdef Py_buffer view
        self.batches = []
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            self.packets(<const uint8_t*> view.buf, view.len if size < 0 else min(size, view.len))
        finally:
            PyBuffer_Release(&view)
        return self.batches

    # --- packets ------------------------------------------------------------------------------------------------------

    cdef int packets(self, const uint8_t* p, size_t size) except -1:
        cdef const uint8_t* end = p + size
        cdef size_t length, piece
        while p < end or (self.in_packet and self.left == 0):
            if not self.in_packet:
                if self.head_size == 0 and not self.continued and end - p >= 4:  # fast path: a complete packet
                    length = le(p, 3)
                    if length < LONGEST_PACKET and length <= <size_t> (end - p - 4):
                        self.check_sequence(p[3])
                        self.payload(p + 4, length)
                        p += 4 + length
                        continue
                self.head[self.head_size] = p[0]
                self.head_size += 1
                p += 1
                if self.head_size == 4:
                    self.begin_packet()
                continue
            piece = min(self.left, <size_t> (end - p))
            check(append(&self.part, p, piece))
            p += piece
            self.left -= piece
            if self.left == 0:
                self.end_packet()
        return 0

    cdef int begin_packet(self) except -1:
        self.head_size = 0
        self.in_packet = True
        self.left = le(self.head, 3)
        self.continued = self.left == LONGEST_PACKET
        self.check_sequence(self.head[3])
        if self.part.size + self.left > UINT32_MAX:
            corrupt("a row has more than 4 GiB")
        return 0

    cdef int end_packet(self) except -1:
        cdef size_t size
        self.in_packet = False
        if not self.continued:
            size, self.part.size = self.part.size, 0
            self.payload(<const uint8_t*> self.part.data, size)
            trim(&self.part)
        return 0

    cdef void check_sequence(self, uint8_t number) noexcept:
        self.out_of_sequence |= number != self.sequence
        self.sequence = number + 1

    # --- payloads -----------------------------------------------------------------------------------------------------

    cdef int payload(self, const uint8_t* p, size_t size) except -1:
        if self.expected == Expected.NOTHING:
            corrupt("there are bytes after its end")
        if size == 0:
            corrupt("a packet is empty")
        if p[0] == First.ERROR:  # a server that shuts down does not number it
            return self.refuse(p, size)
        if self.out_of_sequence:
            corrupt("a packet is missing or repeated")
        if self.expected == Expected.ROW:
            if p[0] == First.SIZE_64 and size <= self.longest_end:
                return self.end(p, p + size)
            return self.row(p, p + size)
        if self.expected == Expected.COLUMN_COUNT:
            return self.read_count(p, p + size)
        if self.expected == Expected.DEFINITION:
            self.definitions -= 1
            if self.definitions == 0:
                self.expected = Expected.ROW if self.deprecate_eof else Expected.END_OF_DEFINITIONS
            return 0
        if p[0] != First.SIZE_64 or size > LONGEST_EOF:
            corrupt("the columns' definitions have no end")
        self.expected = Expected.ROW
        return 0

    cdef int read_count(self, const uint8_t* p, const uint8_t* end) except -1:
        cdef uint64_t count
        if p[0] == 0 or p[0] == First.NULL_VALUE:
            corrupt("the statement returns no rows; run it with query()")
        read_size(&p, end, &count)
        if p != end or not 0 < count <= MOST_COLUMNS:
            corrupt("the number of columns is malformed")
        if self.columns and self.columns != count:
            corrupt(f"it has {count} columns instead of {self.columns}")
        self.columns = self.definitions = count
        self.expected = Expected.DEFINITION
        return 0

    cdef int end(self, const uint8_t* p, const uint8_t* end) except -1:
        """Read the status in the EOF packet, or in the OK packet that replaces it."""
        cdef uint64_t unused
        p += 1
        if self.deprecate_eof:
            read_size(&p, end, &unused)  # rows affected
            read_size(&p, end, &unused)  # last insert id
        else:
            p += 2  # number of warnings
        if end - p < 2:
            corrupt("its end is cut off")
        if le(p, 2) & MORE_RESULTS:
            corrupt("there is more than one: run one statement at a time")
        if self.count:
            self.end_batch()
        self.finish()
        return 0

    cdef int refuse(self, const uint8_t* p, size_t size) except -1:
        if size < 3:
            corrupt("an error is cut off")
        text = p[3:size]
        text = text[6:] if text[:1] == b"#" else text  # without the SQLSTATE
        self.refusal = le(p + 1, 2), text.decode("utf-8", "replace")
        self.finish()
        return 0

    cdef void finish(self) noexcept:
        self.complete = True
        self.expected = Expected.NOTHING

    # --- rows ---------------------------------------------------------------------------------------------------------

    cdef int row(self, const uint8_t* p, const uint8_t* end) except -1:
        """Pack a row. A value's header in msgpack is at most a byte longer than the server's."""
        cdef const char* conversions = NULL
        cdef size_t converted = 0, i
        cdef uint64_t size
        cdef char* o
        if self.conversions is not None:
            conversions, converted = self.conversions, WIDEST_NUMBER
        o = room(&self.out, 3 + (end - p) + self.columns * (1 + converted))
        if o == NULL:
            raise MemoryError
        o = put_array(o, self.columns)
        for i in range(self.columns):
            if p < end and p[0] == First.NULL_VALUE:
                o = put_nil(o)
                p += 1
                continue
            read_size(&p, end, &size)
            if size > <uint64_t> (end - p):
                corrupt("a value is longer than its row")
            if conversions != NULL and conversions[i]:
                o = convert(o, conversions[i], p, p + size)
            else:
                o = put_bin(o, size)
                memcpy(o, p, size)
                o += size
            p += size
            self.size += size
        if p != end:
            corrupt("there are bytes after a row's last value")
        self.out.size = o - self.out.data
        self.count += 1
        if self.out.size >= self.batch:
            self.end_batch()
        return 0

    cdef int begin_batch(self) except -1:
        if room(&self.out, ARRAY_HEAD) == NULL:
            raise MemoryError
        self.out.size = ARRAY_HEAD
        self.count = self.size = 0
        return 0

    cdef int end_batch(self) except -1:
        put_array32(self.out.data, self.count)
        self.batches.append(RowBatch(self.out.data[:self.out.size], self.count, self.size))
        self.out.size = 0
        trim(&self.out)
        return self.begin_batch()


cdef inline int read_size(const uint8_t** at, const uint8_t* end, uint64_t* size) except -1:
    """Read a length-encoded integer."""
    cdef const uint8_t* p = at[0]
    cdef int width
    if p == end:
        corrupt("a packet is cut off")
    if p[0] < First.NULL_VALUE:
        size[0] = p[0]
        at[0] = p + 1
        return 0
    if p[0] == First.NULL_VALUE or p[0] == First.ERROR:
        corrupt("a size is malformed")
    width = 2 if p[0] == First.SIZE_16 else 3 if p[0] == First.SIZE_24 else 8
    if end - p <= width:
        corrupt("a packet is cut off")
    size[0] = le(p + 1, width)
    at[0] = p + 1 + width
    return 0


cdef char* convert(char* o, char conversion, const uint8_t* p, const uint8_t* end) except NULL:
    """Write a converted value with its header."""
    cdef char* text = o + 2
    cdef char* text_end = text
    cdef double value
    if not read_double(p, end, &value):
        corrupt("a number is malformed")
    if conversion == Convert.YEAR2:
        if not 0 <= value <= 99:
            corrupt("a year is malformed")
        text_end = put_digits(text, <uint64_t> value + (2000 if value < 70 else 1900))
    else:
        text_end = put_float(text, value, conversion == Convert.FLOAT)
    o[0] = <char> Head.BIN8
    o[1] = <char> (text_end - text)
    return text_end


cdef int corrupt(str fault) except -1:
    raise CorruptResult(f"a damaged result set: {fault} (check the network and proxies between here and the server)")
