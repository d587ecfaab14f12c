# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language=c++
"""Bytes of the replication protocol or of a binlog file in, events out.

One `feed()` per chunk does everything: packets → events → checksum → rows as msgpack. Only what becomes an event object
costs Python calls; row images are written without the interpreter's lock into a buffer that is reused.

    feed       _packets ─► _packet ─► _event ─► _rows, _query, …        text.pxi   values as text
    feed_file  _file_events ─────────► _event                           json.pxi   MySQL's binary JSON as text
                                                                        rows.pxi   row images as msgpack
The layouts are those of libs/mysql/binlog/event/*.h in MySQL's source and sql/log_event.h in MariaDB's.
"""

import zlib
from uuid import UUID

from databus_binlog import charsets
from databus_binlog.errors import (
    BinlogError, CorruptEvent, Incident, MissingMetadata, PartialRowImage, UnknownEvent, UnsupportedColumn, from_server,
)
from databus_binlog.events import (
    FormatDescription, Gtid, Heartbeat, Query, Rotate, Rows, RowsQuery, Stop, XaPrepare, Xid,
)
from databus_binlog.table_map import Cursor, FieldType as T, names_of, parse_table_map
from databus_binlog.tagged import parse_tagged_gtid

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memchr, memcmp, memcpy, memset

cdef extern from "zlib.h" nogil:
    unsigned long crc32(unsigned long crc, const uint8_t* data, unsigned int size)

include "text.pxi"
include "buffer.pxi"
include "json.pxi"
include "rows.pxi"

cdef enum:
    HEADER = 19
    WHOLE_PACKET = 0xFFFFFF  # a packet this long is continued by the next one
    REMEMBERED = 10_000      # table maps kept parsed

cdef enum EventType:
    QUERY = 2
    STOP_EVENT = 3
    ROTATE = 4
    FORMAT_DESCRIPTION = 15
    XID = 16
    EXECUTE_LOAD_QUERY = 18
    TABLE_MAP = 19
    INCIDENT = 26
    HEARTBEAT = 27
    ROWS_QUERY = 29
    GTID = 33
    ANONYMOUS_GTID = 34
    PREVIOUS_GTIDS = 35
    XA_PREPARE = 38
    HEARTBEAT_V2 = 41
    GTID_TAGGED = 42
    ANNOTATE_ROWS = 160
    GTID_MARIADB = 162
    GTID_LIST = 163
    QUERY_COMPRESSED = 165

cdef enum Flag:
    IN_USE = 0x01
    ARTIFICIAL = 0x20
    IGNORABLE = 0x80

#: Types that say nothing about data: INTVAR, SLAVE, APPEND_BLOCK, DELETE_FILE, RAND, USER_VAR, BEGIN_LOAD_QUERY (they
#: only prepare a statement that follows), IGNORABLE, PREVIOUS_GTIDS, TRANSACTION_CONTEXT, VIEW_CHANGE,
#: BINLOG_CHECKPOINT, GTID_LIST
SKIPPED = frozenset({5, 7, 9, 11, 13, 14, 17, 28, 35, 36, 37, 161, 163})

TYPE_NAMES = {
    0: "UNKNOWN", 1: "START_V3", 20: "PRE_GA_WRITE_ROWS", 21: "PRE_GA_UPDATE_ROWS", 22: "PRE_GA_DELETE_ROWS",
    39: "PARTIAL_UPDATE_ROWS", 40: "TRANSACTION_PAYLOAD", 164: "START_ENCRYPTION", 172: "PARTIAL_ROW_DATA",
}

cdef tuple ACTIONS = ("insert", "update", "delete")


cdef inline int rows_action(int kind) noexcept:
    """Return 0, 1, 2 for an insert, update, delete event, else -1: versions 1 and 2, and MariaDB's compressed ones."""
    if 23 <= kind <= 25:
        return kind - 23
    if 30 <= kind <= 32:
        return kind - 30
    if 166 <= kind <= 171:
        return (kind - 166) % 3
    return -1


cdef class Decoder:
    """Turns a dump's packets (`feed`) or a file's content (`feed_file`) into events; one decoder per stream or file.

    flavor: "mysql" or "mariadb"; a FORMAT_DESCRIPTION event overrules it.
    wanted(schema, table): rows of other tables are skipped undecoded. Default: all are wanted.
    collations: id → character set name, as the server has them (Session.collations).
    describe(table_map): called once for each new layout of a wanted table that the server logs without names or types;
        returns the completed TableMap.
    file, offset: where the first bytes stand, if known.
    """
    cdef str flavor
    cdef object wanted, describe
    cdef dict collations, plans, tables
    cdef list events
    cdef readonly object failure   # BinlogError that comes after the events already returned
    cdef readonly bint finished    # the server said that there is no more
    cdef readonly str file
    cdef readonly uint64_t offset  # where the next event starts
    cdef bint from_file, checksum, format_known, continued
    cdef Buffer part               # the beginning of a packet or file event whose rest has not come yet
    cdef Buffer whole              # an event that spans several packets
    cdef Buffer out
    cdef uint32_t time, server_id
    cdef uint64_t start, end
    cdef bytes source_bytes        # MySQL: the last GTID's source, and its text
    cdef str source_text

    def __init__(self, *, flavor="mysql", wanted=None, collations=None, describe=None, file="", offset=0):
        self.flavor = flavor
        self.wanted = wanted
        self.describe = describe
        self.collations = dict(charsets.DEFAULT_COLLATIONS if collations is None else collations)
        self.plans = {}
        self.tables = {}
        self.events = []
        self.file = file
        self.offset = offset

    def __dealloc__(self):
        free(self.part.data)
        free(self.whole.data)
        free(self.out.data)

    @property
    def pending(self):
        """Bytes of an event whose rest has not been fed yet."""
        return self.part.size + self.whole.size

    # --- chunks ---------------------------------------------------------------------------------------------------

    def feed(self, const uint8_t[::1] data, Py_ssize_t size=-1):
        """Decode the next `size` bytes of a dump's connection. Events before a failure come first, then it is raised."""
        return self._run(data, size)

    def feed_file(self, const uint8_t[::1] data):
        """Decode the next bytes of a binlog file."""
        self.from_file = True
        return self._run(data, -1)

    cdef list _run(self, const uint8_t[::1] data, Py_ssize_t size):
        if self.failure is not None:
            raise self.failure
        if size < 0:
            size = data.shape[0]
        elif size > data.shape[0]:
            raise ValueError(f"{size} bytes are more than the buffer has")
        self.events = []
        if size == 0:
            return self.events
        try:
            if self.from_file:
                self._file_events(&data[0], &data[0] + size)
            else:
                self._packets(&data[0], &data[0] + size)
        except BinlogError as error:
            self.failure = error
            if not self.events:
                raise
        return self.events

    cdef int _packets(self, const uint8_t* p, const uint8_t* end) except -1:
        """Cut packets: u24 length, u8 sequence, payload. One that is not complete waits in `part`."""
        cdef size_t size
        while p < end:
            if self.part.size == 0 and end - p >= 4:
                size = le(p, 3)
                if <size_t> (end - p) >= 4 + size:
                    self._packet(p + 4, size)
                    p += 4 + size
                    continue
            p = self._complete(p, end, 4)
            if self.part.size < 4:
                break
            size = le(<uint8_t*> self.part.data, 3)
            p = self._complete(p, end, 4 + size)
            if self.part.size < 4 + size:
                break
            self.part.size = 0
            self._packet(<uint8_t*> self.part.data + 4, size)
        return 0

    cdef int _file_events(self, const uint8_t* p, const uint8_t* end) except -1:
        """Cut a file: four bytes of magic, then events, each with its size in its header."""
        cdef size_t size
        if self.offset < 4:
            p = self._complete(p, end, 4)
            if self.part.size < 4:
                return 0
            if memcmp(self.part.data, b"\xfebin", 4) != 0:
                kind = "an encrypted" if memcmp(self.part.data, b"\xfdbin", 4) == 0 else "no"
                raise CorruptEvent(f"{self.file or 'this'} is {kind} binlog file; read it through the server")
            self.part.size = 0
            self.offset = 4
        while p < end:
            if self.part.size == 0 and end - p >= HEADER:
                size = le(p + 9, 4)
                if HEADER <= size <= <size_t> (end - p):
                    self._event(p, size)
                    p += size
                    continue
            p = self._complete(p, end, HEADER)
            if self.part.size < HEADER:
                break
            size = le(<uint8_t*> self.part.data + 9, 4)
            if size < HEADER:
                raise CorruptEvent(f"an event of {size} bytes at {self.file}:{self.offset}")
            p = self._complete(p, end, size)
            if self.part.size < size:
                break
            self.part.size = 0
            self._event(<uint8_t*> self.part.data, size)
        return 0

    cdef const uint8_t* _complete(self, const uint8_t* p, const uint8_t* end, size_t size) except NULL:
        """Move bytes to `part` until it has `size` of them or there are no more; return where the next ones are."""
        cdef size_t count
        if self.part.size < size:
            count = min(<size_t> (end - p), size - self.part.size)
            check(append(&self.part, p, count))
            p += count
        return p

    cdef int _packet(self, const uint8_t* p, size_t size) except -1:
        """Take the status byte off a packet and put together an event that spans several."""
        if self.continued:
            check(append(&self.whole, p, size))
            if size < WHOLE_PACKET:
                self.continued = False
                size, self.whole.size = self.whole.size, 0
                self._event(<uint8_t*> self.whole.data, size)
        elif size == 0:
            raise CorruptEvent(f"an empty packet after {self.file}:{self.offset}")
        elif p[0] == 0:
            if size < WHOLE_PACKET:
                self._event(p + 1, size - 1)
            else:
                check(append(&self.whole, p + 1, size - 1))
                self.continued = True
        elif p[0] == 0xFF and size >= 3:
            text = p[3:size]
            if text[:1] == b"#":
                text = text[6:]
            raise from_server(le(p + 1, 2), text.decode("utf-8", "replace"))
        elif p[0] == 0xFE and size < 9:
            self.finished = True
        else:
            raise CorruptEvent(f"a packet with status {p[0]} after {self.file}:{self.offset}")
        return 0

    # --- events ---------------------------------------------------------------------------------------------------

    cdef int _event(self, const uint8_t* p, size_t size) except -1:
        """Header: time u32, type u8, server id u32, size u32, next position u32, flags u16."""
        cdef int kind
        cdef uint16_t flags
        cdef const uint8_t* body = p + HEADER
        cdef const uint8_t* end = p + size
        if size < HEADER or le(p + 9, 4) != size:
            raise CorruptEvent(f"an event of a wrong size after {self.file}:{self.offset}; read from there again")
        kind = p[4]
        flags = <uint16_t> le(p + 17, 2)
        self.time = <uint32_t> le(p, 4)
        self.server_id = <uint32_t> le(p + 5, 4)
        self._place(kind, size, <uint32_t> le(p + 13, 4), flags)
        if kind == FORMAT_DESCRIPTION:
            self._format_description(p, end)
            return 0
        end -= self._checked(p, size)
        if kind == TABLE_MAP:
            self._table_map(body, end)
        elif rows_action(kind) >= 0:
            self._rows(kind, body, end)
        elif kind == XID:
            self._need(end - body, 8, "XID")
            self.events.append(Xid(self.time, self.server_id, self.file, self.start, self.end, le(body, 8)))
        elif kind == QUERY or kind == QUERY_COMPRESSED or kind == EXECUTE_LOAD_QUERY:
            self._query(kind, body, end)
        elif kind == GTID_MARIADB:
            self._gtid_mariadb(body, end)
        elif kind == GTID or kind == ANONYMOUS_GTID:
            self._gtid(kind, body, end)
        elif kind == HEARTBEAT or kind == HEARTBEAT_V2:
            self._heartbeat(kind, body, end)
        elif kind == ROTATE:
            self._rotate(body, end, flags & ARTIFICIAL)
        elif kind == ANNOTATE_ROWS:
            self.events.append(RowsQuery(self.time, self.server_id, self.file, self.start, self.end, body[:end - body]))
        elif kind == ROWS_QUERY:  # its first byte is a length that can't hold most lengths
            self._need(end - body, 1, "ROWS_QUERY")
            body += 1
            self.events.append(RowsQuery(self.time, self.server_id, self.file, self.start, self.end, body[:end - body]))
        elif kind == STOP_EVENT:
            self.events.append(Stop(self.time, self.server_id, self.file, self.start, self.end))
        elif kind in SKIPPED:
            pass
        elif kind == GTID_TAGGED:
            self._gtid_tagged(body[:end - body])
        elif kind == XA_PREPARE:
            self._xa_prepare(body[:end - body])
        elif kind == INCIDENT:
            self._incident(body[:end - body])
        elif not flags & IGNORABLE:
            name = TYPE_NAMES.get(kind, "unknown")
            raise UnknownEvent(f"event type {kind} ({name}) at {self._where()} can't be decoded; this version stops here")
        return 0

    def _where(self):
        return f"{self.file}:{self.start}"

    cdef int _need(self, Py_ssize_t size, Py_ssize_t wanted, str what) except -1:
        if size < wanted:
            raise CorruptEvent(f"{what} event at {self._where()} is truncated")
        return 0

    cdef int _place(self, int kind, size_t size, uint32_t next_position, uint16_t flags) except -1:
        """Find the event's place in its file. The header has only the lower half of where the next event starts."""
        cdef uint64_t end
        self.start = self.end = self.offset
        if self.from_file:
            self.end = self.offset = self.offset + size
            return 0
        if kind == HEARTBEAT or kind == HEARTBEAT_V2 or flags & ARTIFICIAL:
            return 0
        end = self.offset + size
        if next_position == 0:  # MariaDB ≥ 11.4 inside transactions; the others are made up by the server
            if kind == FORMAT_DESCRIPTION or kind == PREVIOUS_GTIDS or kind == GTID_LIST:
                return 0
        elif <uint32_t> end != next_position:  # the server left events out
            end = self._widened(next_position)
        self.start, self.end, self.offset = end - size if end > size else 0, end, end
        return 0

    cdef uint64_t _widened(self, uint32_t position) noexcept:
        """Put the upper half of the current offset to a position, counting a wrap at 4 GiB."""
        cdef uint64_t upper = self.offset & ~<uint64_t> 0xFFFFFFFF
        if self.offset - upper > <uint64_t> position + 0x80000000:
            upper += <uint64_t> 1 << 32
        return upper | position

    cdef int _checked(self, const uint8_t* p, size_t size) except -1:
        """Verify the checksum; return how many bytes it takes."""
        cdef bint right
        if not self.format_known:  # the first ROTATE comes before we are told, with a checksum or without
            return 4 if size >= HEADER + 4 and crc32(0, p, <unsigned int> size - 4) == le(p + size - 4, 4) else 0
        if not self.checksum:
            return 0
        with nogil:
            right = size >= HEADER + 4 and crc32(0, p, <unsigned int> size - 4) == le(p + size - 4, 4)
        if not right:
            raise CorruptEvent(f"wrong checksum of event type {p[4]} at {self._where()}; check disk and network, read again")
        return 4

    cdef int _format_description(self, const uint8_t* p, const uint8_t* end) except -1:
        """binlog version u16, server version 50, created u32, header size u8, post-header sizes, algorithm u8, CRC."""
        cdef const uint8_t* body = p + HEADER
        self._need(end - body, 57 + 5, "FORMAT_DESCRIPTION")
        if le(body, 2) != 4 or body[56] != HEADER:
            raise CorruptEvent(f"binlog version {le(body, 2)} at {self._where()}; only version 4 can be read")
        version = body[2:52].rstrip(b"\0").decode("utf-8", "replace")
        if end - body - 57 - 5 >= 160:  # a size for each event type: MariaDB's own start at 160
            self.flavor = "mariadb"
            self.checksum = (end - 5)[0] == 1
        else:
            self.flavor = "mysql"
            self.checksum = release(version) >= (5, 6, 1) and (end - 5)[0] == 1
        self.format_known = True
        if self.checksum:  # computed before the file was marked as in use
            whole = bytearray(p[:end - p - 4])
            whole[17] &= ~IN_USE
            if zlib.crc32(whole) != le(end - 4, 4):
                raise CorruptEvent(f"wrong checksum of FORMAT_DESCRIPTION at {self._where()}; check disk and network")
        self.tables.clear()
        self.events.append(
            FormatDescription(self.time, self.server_id, self.file, self.start, self.end, version, self.checksum)
        )
        return 0

    cdef int _rotate(self, const uint8_t* body, const uint8_t* end, bint artificial) except -1:
        self._need(end - body, 9, "ROTATE")
        position = le(body, 8)
        body += 8
        name = body[:end - body].decode("utf-8", "replace")
        self.events.append(
            Rotate(self.time, self.server_id, self.file, self.start, self.end, name, position, artificial)
        )
        self.tables.clear()
        if not self.from_file:
            self.file, self.offset = name, position
        return 0

    cdef int _heartbeat(self, int kind, const uint8_t* body, const uint8_t* end) except -1:
        """Version 1: the file name, the position in the header. Version 2: fields 1 name, 2 position, 0 end."""
        cdef const uint8_t* header = body - HEADER
        position = self._widened(<uint32_t> le(header + 13, 4))
        name = self.file
        if kind == HEARTBEAT:
            name = body[:end - body].decode("utf-8", "replace")
        else:
            try:
                fields = Cursor(body[:end - body])
                while fields and (field := fields.uint(1)):
                    value = fields.lenenc_bytes()
                    if field == 1:
                        name = value.decode("utf-8", "replace")
                    elif field == 2:
                        position = Cursor(value).lenenc()
            except (IndexError, KeyError) as error:
                raise CorruptEvent(f"HEARTBEAT event at {self._where()} is malformed: {error}") from error
        if name == self.file:
            self.offset = position
        self.events.append(Heartbeat(self.time, self.server_id, name, position, position))
        return 0

    # --- transactions ---------------------------------------------------------------------------------------------

    cdef int _gtid_mariadb(self, const uint8_t* body, const uint8_t* end) except -1:
        """sequence u64, domain u32, flags u8 (1 standalone, 32 DDL), more that nobody needs."""
        self._need(end - body, 13, "GTID")
        gtid = f"{le(body + 8, 4)}-{self.server_id}-{le(body, 8)}"
        self.events.append(
            Gtid(
                self.time, self.server_id, self.file, self.start, self.end,
                gtid, bool(body[12] & 1), bool(body[12] & 32), 0,
            )
        )
        return 0

    cdef int _gtid(self, int kind, const uint8_t* body, const uint8_t* end) except -1:
        """flags u8, source 16, number u64, 2 u8, committed and sequence i64 each, commit times in 7 bytes each."""
        cdef uint64_t committed = 0
        cdef str gtid = ""
        self._need(end - body, 25, "GTID")
        if kind == GTID:
            source = body[1:17]
            if source != self.source_bytes:
                self.source_bytes, self.source_text = source, str(UUID(bytes=source))
            gtid = f"{self.source_text}:{le(body + 17, 8)}"
        if end - body >= 49 and body[25] == 2:
            committed = le(body + 42, 7)
            if committed >> 55:  # the original server's time follows
                self._need(end - body, 56, "GTID")
                committed = le(body + 49, 7)
        self.events.append(
            Gtid(self.time, self.server_id, self.file, self.start, self.end, gtid, False, False, committed)
        )
        return 0

    def _gtid_tagged(self, bytes body):
        try:
            gtid, committed = parse_tagged_gtid(body)
        except (ValueError, IndexError) as error:
            raise CorruptEvent(f"GTID_TAGGED event at {self._where()} can't be read: {error}") from error
        self.events.append(
            Gtid(self.time, self.server_id, self.file, self.start, self.end, gtid, False, False, committed)
        )

    def _xa_prepare(self, bytes body):
        """one phase u8, format u32, lengths of the two parts u32 each, the parts."""
        try:
            cursor = Cursor(body)
            one_phase, format_id, gtrid, bqual = cursor.uint(1), cursor.uint(4), cursor.uint(4), cursor.uint(4)
            xid = f"X'{cursor.take(gtrid).hex()}',X'{cursor.take(bqual).hex()}',{format_id}"
        except IndexError as error:
            raise CorruptEvent(f"XA_PREPARE event at {self._where()} is truncated") from error
        self.events.append(
            XaPrepare(self.time, self.server_id, self.file, self.start, self.end, xid, bool(one_phase))
        )

    def _incident(self, bytes body):
        """number u16, length u8, message."""
        message = body[3:].decode("utf-8", "replace")
        raise Incident(f"the server lost events before {self._where()}: {message}; start again from a new snapshot")

    cdef int _query(self, int kind, const uint8_t* body, const uint8_t* end) except -1:
        """thread u32, seconds u32, length of schema u8, error u16, length of status u16, status, schema, NUL, text."""
        cdef size_t fixed = 26 if kind == EXECUTE_LOAD_QUERY else 13  # LOAD DATA: its file's number and place follow
        cdef size_t status_size, schema_size
        cdef const uint8_t* status = body + fixed
        cdef const uint8_t* text
        cdef int client = -1
        cdef object xid = None
        self._need(end - body, fixed, "QUERY")
        status_size, schema_size = le(body + 11, 2), body[8]
        self._need(end - status, status_size + schema_size + 1, "QUERY")
        text = status + status_size + schema_size + 1
        query = text[:end - text]
        if kind == QUERY_COMPRESSED:
            query = self._inflated(query)
        client, xid = self._status(status, status + status_size)
        if client >= 0 and not query.isascii():
            charset = self.collations.get(client, f"of collation {client}")
            try:
                query = charsets.to_text(query, charset).encode()
            except (LookupError, UnicodeError) as error:
                raise UnsupportedColumn(f"statement at {self._where()} in character set {charset}: {error}") from error
        status += status_size
        self.events.append(
            Query(
                self.time, self.server_id, self.file, self.start, self.end,
                status[:schema_size].decode("utf-8", "replace"), query, le(body, 4), le(body + 9, 2), xid,
            )
        )
        return 0

    cdef tuple _status(self, const uint8_t* p, const uint8_t* end):
        """Find the client's collation and the XID of DDL among the status variables; an unknown code ends them."""
        cdef int code, size, client = -1, i
        cdef object xid = None
        while p < end:
            code = p[0]
            p += 1
            if code in STATUS_SIZES:
                size = STATUS_SIZES[code]
            elif (code == 2 or code == 5 or code == 6) and p < end:
                size = 1 + p[0] + (code == 2)
            elif code == 11 and p < end:
                size = 1 + p[0]
                if end - p > size:
                    size += 1 + p[size]
            elif code == 12 and p < end:
                size = 1
                for i in range(0 if p[0] == 254 else p[0]):
                    while size < end - p and p[size]:
                        size += 1
                    size += 1
            elif code == 130 and p < end:
                size = 9 if p[0] & 12 else 1
            else:
                break
            if size > end - p:
                break
            if code == 4:
                client = <int> le(p, 2)
            elif code == 17 or code == 129:
                xid = le(p, 8)
            p += size
        return client, xid

    # --- rows -----------------------------------------------------------------------------------------------------

    cdef int _table_map(self, const uint8_t* body, const uint8_t* end) except -1:
        """Number of the table in 6 bytes, flags u16, and what `parse_table_map` reads: parsed once for each layout."""
        self._need(end - body, 8, "TABLE_MAP")
        layout = body[8:end - body]
        plan = self.plans.get(layout)
        if plan is None:
            plan = self._plan(body[:end - body])
            if len(self.plans) >= REMEMBERED:
                self.plans.clear()
            self.plans[layout] = plan
        self.tables[le(body, 6)] = plan
        return 0

    def _plan(self, bytes body):
        try:
            if self.wanted is not None and not self.wanted(*names_of(body)):
                return Plan.unwanted()
            table = parse_table_map(body, self.flavor, self.collations)
        except LookupError as error:
            raise CorruptEvent(f"TABLE_MAP event at {self._where()} can't be read: {error}") from error
        except ValueError as error:
            raise CorruptEvent(f"TABLE_MAP event at {self._where()} can't be read: {error}") from error
        if self.describe is not None and not table.has_names:
            table = self.describe(table)
        return Plan.of(table)

    cdef int _rows(self, int kind, const uint8_t* p, const uint8_t* end) except -1:
        """Number of the table, flags u16, version 2: size and extra data; column count, bitmaps of columns, images."""
        cdef uint64_t number
        cdef uint16_t flags
        cdef uint32_t images = 0, at = 0, bitmaps, count
        cdef Fault fault
        cdef Plan plan
        cdef int action = rows_action(kind)
        cdef bint second_version = 30 <= kind <= 32 or kind >= 169, compressed = kind >= 166
        self._need(end - p, 8, "ROWS")
        number, flags = le(p, 6), <uint16_t> le(p + 6, 2)
        p += 8
        if second_version:
            self._need(end - p, 2, "ROWS")
            self._need(end - p, le(p, 2), "ROWS")
            p += le(p, 2)
        if number == 0xFFFFFF:  # no table: only the end of a statement
            return 0
        plan = self.tables.get(number)
        if plan is None:
            raise CorruptEvent(f"rows at {self._where()} belong to no table map; read from an earlier position")
        if flags & 1:
            self.tables.clear()
        if plan.table is None:
            return 0
        if plan.refused is not None:
            raise plan.refusal(f"{plan.refused} ({self._where()})")
        self._need(end - p, 3, "ROWS")
        if p[0] < 0xFB:
            count = p[0]
            p += 1
        else:
            count = <uint32_t> le(p + 1, 2)
            p += 3
        if count != plan.count:
            raise CorruptEvent(f"rows of {plan.name} at {self._where()} have {count} columns, their table map {plan.count}")
        bitmaps = 2 if action == 1 else 1
        self._need(end - p, bitmaps * ((count + 7) // 8), "ROWS")
        for _ in range(bitmaps):
            if not all_set(p, count):
                raise PartialRowImage(f"rows of {plan.name} at {self._where()} lack columns; set binlog_row_image=FULL")
            p += (count + 7) // 8
        if compressed:
            inflated = self._inflated(p[:end - p])
            p = <const uint8_t*> PyBytes_AS_STRING(inflated)
            end = p + len(inflated)
        self.out.size = 0
        with nogil:
            fault = write_images(plan.columns, count, p, end, &self.out, &images, &at)
        if fault == NO_MEMORY:
            raise MemoryError
        if fault != NONE or images % bitmaps:
            raise CorruptEvent(
                f"column {plan.table.columns[at].name or at} of {plan.name} at {self._where()}: {FAULTS[fault]}"
            )
        self.events.append(
            Rows(
                self.time, self.server_id, self.file, self.start, self.end, plan.table, ACTIONS[action], images,
                PyBytes_FromStringAndSize(self.out.data, self.out.size), bool(flags & 1),
            )
        )
        return 0

    def _inflated(self, bytes block):
        """MariaDB's compressed events: 0x80 | length bytes, uncompressed length big-endian, zlib stream."""
        try:
            if block[0] & 0xF0 != 0x80:
                raise ValueError(f"compression {block[0] >> 4 & 7}")
            lengths = 1 + (block[0] & 7)
            data = zlib.decompress(block[lengths:])
            if len(data) != int.from_bytes(block[1:lengths], "big"):
                raise ValueError("another length than announced")
        except (IndexError, ValueError, zlib.error) as error:
            raise CorruptEvent(f"compressed event at {self._where()} can't be inflated: {error}") from error
        return data


cdef dict STATUS_SIZES = {
    0: 4, 1: 8, 3: 4, 4: 6, 7: 2, 8: 2, 9: 8, 10: 4, 13: 3, 16: 1, 17: 8, 18: 2, 19: 1, 20: 1, 128: 3, 129: 8,
}
cdef dict FAULTS = {
    NONE: "an update with half a row", TRUNCATED: "the row is truncated", BAD_JSON: "malformed binary JSON",
    BAD_TEXT: "bytes that its character set does not have",
}


cdef bint all_set(const uint8_t* bitmap, uint32_t count) noexcept nogil:
    cdef uint32_t i
    for i in range(count):
        if not bitmap[i >> 3] >> (i & 7) & 1:
            return False
    return True


cdef int check(Fault fault) except -1:
    if fault == NO_MEMORY:
        raise MemoryError
    return 0


def release(version):
    """Return the leading numbers of a server's version."""
    numbers = []
    for part in version.split("-")[0].split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)
