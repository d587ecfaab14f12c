# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language=c++
"""Bytes of the replication protocol or of a binlog file in, events out.

One `feed()` per chunk does everything: packets → events → checksum → rows. The events that come with every transaction
are written straight into one buffer, as msgpack; no Python object is made for them. The others take the way through
control.py, and join them there.

    feed ─► framing.pxi ─► _event ─► _rows ─► rows.pxi   row images, by the plan.pxi of their table
                              │                text.pxi   values as text
                              │                json.pxi   MySQL's binary JSON as text
                              └────► _gtid, _xid, control.py
The layouts are those of libs/mysql/binlog/event/*.h in MySQL's source and sql/log_event.h in MariaDB's.
"""

from uuid import UUID

from databus_binlog import charsets, control
from databus_binlog.errors import (
    CorruptEvent, MissingMetadata, PartialRowImage, UnknownEvent, UnsupportedColumn, from_server,
)
from databus_binlog.events import Events, Stop, encode_event
from databus_binlog.json_diff import apply_diffs
from databus_binlog.payload import PIECE as PIECE_, TransactionPayload
from databus_binlog.table_map import NOT_LOGGED, FieldType as T, names_of, parse_table_map

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memchr, memcmp, memcpy, memmove, memset

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
    PARTIAL_UPDATE_ROWS = 39
    TRANSACTION_PAYLOAD = 40
    HEARTBEAT_V2 = 41
    GTID_TAGGED = 42
    ANNOTATE_ROWS = 160
    GTID_MARIADB = 162
    GTID_LIST = 163
    START_ENCRYPTION = 164
    QUERY_COMPRESSED = 165
    PARTIAL_ROW_DATA = 172

cdef size_t PIECE = PIECE_

include "text.pxi"
include "buffer.pxi"
include "checksum.pxi"
include "inflate.pxi"
include "json.pxi"
include "rows.pxi"
include "plan.pxi"
include "framing.pxi"

cdef enum:
    REMEMBERED = 10_000  # plans of table maps
    ARRAY_HEAD = 5
    GTID_TAG = 3         # of the classes in events.py whose events are written here
    QUERY_TAG = 4
    XID_TAG = 5
    ROWS_TAG = 8

cdef enum Flag:
    ARTIFICIAL = 0x20
    IGNORABLE = 0x80

#: Types that say nothing about data: INTVAR, SLAVE, APPEND_BLOCK, DELETE_FILE, RAND, USER_VAR, BEGIN_LOAD_QUERY (they
#: only prepare a statement that follows), IGNORABLE, PREVIOUS_GTIDS, TRANSACTION_CONTEXT, VIEW_CHANGE,
#: BINLOG_CHECKPOINT, GTID_LIST
SKIPPED = frozenset({5, 7, 9, 11, 13, 14, 17, 28, 35, 36, 37, 161, 163})

TYPE_NAMES = {
    0: "UNKNOWN", 1: "START_V3", 2: "QUERY", 4: "ROTATE", 15: "FORMAT_DESCRIPTION", 16: "XID", 18: "EXECUTE_LOAD_QUERY",
    19: "TABLE_MAP", 20: "PRE_GA_WRITE_ROWS", 21: "PRE_GA_UPDATE_ROWS", 22: "PRE_GA_DELETE_ROWS", 26: "INCIDENT",
    27: "HEARTBEAT", 29: "ROWS_QUERY", 33: "GTID", 34: "ANONYMOUS_GTID", 38: "XA_PREPARE", 40: "TRANSACTION_PAYLOAD",
    41: "HEARTBEAT_V2", 42: "GTID_TAGGED", 160: "ANNOTATE_ROWS", 162: "GTID", 164: "START_ENCRYPTION",
    165: "QUERY_COMPRESSED", 172: "PARTIAL_ROW_DATA",
}

CONTROL = {
    HEARTBEAT: control.heartbeat, HEARTBEAT_V2: control.heartbeat_v2, GTID_TAGGED: control.gtid_tagged,
    XA_PREPARE: control.xa_prepare, ROWS_QUERY: control.rows_query, ANNOTATE_ROWS: control.annotate_rows,
}

FAULTS = {
    TRUNCATED: "the row is truncated", NO_COLUMNS: "rows without any column", BAD_JSON: "malformed binary JSON",
    BAD_TEXT: "bytes that its character set does not have", BAD_COMPRESSION: "its compressed value can't be inflated",
    BAD_DIFF: "its JSON diff does not fit the value before",
    NO_IMAGE_BEFORE: "a JSON diff without the value before; set binlog_row_image=FULL",
}

cdef tuple ACTIONS = (b"insert", b"update", b"delete")


cdef inline int rows_action(int kind) noexcept:
    """Return 0, 1, 2 for an insert, update, delete event, else -1: versions 1 and 2, and MariaDB's compressed ones."""
    if 23 <= kind <= 25:
        return kind - 23
    if 30 <= kind <= 32:
        return kind - 30
    if 166 <= kind <= 171:
        return (kind - 166) % 3
    return 1 if kind == PARTIAL_UPDATE_ROWS else -1


cdef class Decoder(Framer):
    """Turns a dump's packets (`feed`) or a file's content (`feed_file`) into events; one decoder per stream or file.

    flavor: "mysql" or "mariadb"; a FORMAT_DESCRIPTION event overrules it.
    wanted(schema, table): rows of other tables are skipped undecoded. Default: all are wanted.
    collations: id → character set name, as the server has them (Session.collations).
    describe(table_map): called once for each new layout of a wanted table; returns the TableMap, completed where the
        server logs too little (binlog_row_metadata).
    file, offset: where the first bytes stand, if known.
    semi_sync: the server was asked for semi-sync, so its packets say whether it waits for an acknowledgement.
    """
    cdef str flavor
    cdef object wanted, describe
    cdef dict collations, plans
    cdef dict tables               # those of the events under way
    cdef uint64_t calls            # of feed: marks the tables above
    cdef uint32_t count, images    # events and row images under way
    cdef size_t good               # where the last complete event ends in the output
    cdef Buffer numbers            # the statement's TABLE_MAPs: numbers, and the plans at the same places
    cdef list mapped
    cdef Plan recent               # of the last table map
    cdef Buffer inflated, json, scratch
    cdef object payload            # the compressed transaction under way, and the beginning of an event in it
    cdef Buffer inner
    cdef bint in_payload
    cdef Buffer fragments          # of one large rows event
    cdef uint32_t fragment         # the number of the last part
    cdef uint64_t announced        # the size of all parts, 0 if it is not told
    cdef bint format_known, checksum
    cdef bytes name                # `file`, encoded
    cdef uint32_t time, server_id
    cdef uint64_t start, end
    cdef tuple ack
    cdef bytes source_bytes, source_text  # MySQL: the last GTID's source

    def __init__(
        self, *, flavor="mysql", wanted=None, collations=None, describe=None, file="", offset=0, semi_sync=False
    ):
        self.flavor = flavor
        self.wanted = wanted
        self.describe = describe
        self.collations = dict(charsets.DEFAULT_COLLATIONS if collations is None else collations)
        self.plans = {}
        self.mapped = []
        self.semi_sync = semi_sync
        self._enter(file, offset)

    def __dealloc__(self):
        free(self.numbers.data)
        free(self.inflated.data)
        free(self.json.data)
        free(self.scratch.data)
        free(self.inner.data)
        free(self.fragments.data)

    def feed(self, data, Py_ssize_t size=-1):
        """Decode the next `size` bytes of a dump's connection. Events before a failure come first, then it is raised."""
        return self._decode(data, size)

    def feed_file(self, data):
        """Decode the next bytes of a binlog file."""
        self.from_file = True
        return self._decode(data, -1)

    def take_ack(self):
        """Return file and offset of the last event since the last call that the server waits for, or None."""
        ack, self.ack = self.ack, None
        return ack

    cdef object _decode(self, object data, Py_ssize_t size):
        cdef Py_buffer view
        if self.failure is not None:
            raise self.failure
        if room(&self.out, ARRAY_HEAD) == NULL:
            raise MemoryError
        self.out.size = self.good = ARRAY_HEAD
        self.count = self.images = 0
        self.tables = {}
        self.calls += 1
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            if size > view.len:
                raise ValueError(f"{size} bytes are more than the buffer has")
            self._frame(<const uint8_t*> view.buf, view.len if size < 0 else size)
        except Exception as error:  # also of a hook: what it left half done is not gone on with
            self.failure = error
            if not self.count:
                raise
        finally:
            PyBuffer_Release(&view)
        self.out.data[0] = <char> 0xDD
        put_big(self.out.data + 1, self.count, 4)
        return Events(PyBytes_FromStringAndSize(self.out.data, self.good), self.count, self.images, self.tables)

    # --- output ---------------------------------------------------------------------------------------------------

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
        self.good = self.out.size = o - self.out.data
        self.count += 1
        return 0

    cdef int _emit(self, object event) except -1:
        """Add an event that is not worth writing by hand."""
        cdef bytes encoded = encode_event(event)
        check(append(&self.out, PyBytes_AS_STRING(encoded), PyBytes_GET_SIZE(encoded)))
        self._complete(self.out.data + self.out.size)
        return 0

    # --- events ---------------------------------------------------------------------------------------------------

    cdef int _event(self, const uint8_t* p, size_t size) except -1:
        """Header: time u32, type u8, server id u32, size u32, next position u32, flags u16."""
        cdef int kind = p[4]
        cdef uint16_t flags = <uint16_t> le(p + 17, 2)
        cdef const uint8_t* body = p + HEADER
        cdef const uint8_t* end = p + size
        self.time = <uint32_t> le(p, 4)
        self.server_id = <uint32_t> le(p + 5, 4)
        if not self.in_payload:  # else the place is that of the whole transaction
            self._find_place(kind, size, <uint32_t> le(p + 13, 4), flags)
            if self.fragment and kind != PARTIAL_ROW_DATA and kind != HEARTBEAT and kind != HEARTBEAT_V2:
                raise CorruptEvent(f"a rows event in parts ends before its last part at {self._where()}")
            if kind == FORMAT_DESCRIPTION:
                return self._format_description(p[:size])
            end -= self._checked(p, size)
            if self.ack_wanted:
                self.ack = self.file, self.end
        if kind == TABLE_MAP:
            return self._table_map(body, end)
        if rows_action(kind) >= 0:
            return self._rows(kind, body, end)
        if kind == XID:
            return self._xid(body, end)
        if kind == GTID_MARIADB:
            return self._gtid_mariadb(body, end)
        if kind == GTID or kind == ANONYMOUS_GTID:
            return self._gtid(kind, body, end)
        if kind == QUERY and self._is_begin(body, end):
            return self._begin_query(body)
        try:
            self._control(kind, body[:end - body], flags)
        except (LookupError, ValueError) as error:
            raise self._corrupt(TYPE_NAMES.get(kind, f"type {kind}"), error) from error
        return 0

    cdef object _corrupt(self, str what, object error):
        return CorruptEvent(f"{what} event at {self._where()} can't be read: {error}")

    cdef str _where(self):
        return f"{self.file}:{self.start}"

    cdef tuple _place(self):
        return self.time, self.server_id, self.file, self.start, self.end

    cdef int _need(self, Py_ssize_t size, Py_ssize_t wanted, str what) except -1:
        if size < wanted:
            raise CorruptEvent(f"{what} event at {self._where()} is truncated")
        return 0

    cdef int _enter(self, str file, uint64_t offset) except -1:
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
        """Verify the checksum; return its size."""
        if not self.format_known:  # the first ROTATE comes before we are told, with a checksum or without
            return 4 if size >= HEADER + 4 and crc32_of(p, size - 4) == le(p + size - 4, 4) else 0
        if not self.checksum:
            return 0
        if size < HEADER + 4 or crc32_of(p, size - 4) != le(p + size - 4, 4):
            raise CorruptEvent(f"wrong checksum of event type {p[4]} at {self._where()}; check disk and network, read again")
        return 4

    # --- events of control.py ---------------------------------------------------------------------------------------

    cdef int _format_description(self, bytes event) except -1:
        try:
            description, self.flavor = control.format_description(self._place(), event)
        except (LookupError, ValueError) as error:
            raise self._corrupt("FORMAT_DESCRIPTION", error) from error
        self.format_known, self.checksum = True, description.checksum
        self._forget_tables()
        return self._emit(description)

    cdef int _control(self, int kind, bytes body, uint16_t flags) except -1:
        if kind in CONTROL:
            event = CONTROL[kind](self._place(), body)
            if (kind == HEARTBEAT or kind == HEARTBEAT_V2) and event.file == self.file:
                self.offset = event.end
            return self._emit(event)
        if kind == QUERY or kind == QUERY_COMPRESSED or kind == EXECUTE_LOAD_QUERY:
            return self._query(kind, body)
        if kind == ROTATE:
            return self._rotate(body, flags & ARTIFICIAL)
        if kind == STOP_EVENT:
            return self._emit(Stop(*self._place()))
        if kind == PARTIAL_ROW_DATA:
            return self._fragment(body)
        if kind == INCIDENT:
            raise control.incident(self._place(), body)
        if kind == START_ENCRYPTION and self.from_file:
            raise UnknownEvent(f"{self.file} is encrypted from {self._where()} on; read it through the server")
        if kind not in SKIPPED and kind != START_ENCRYPTION and not flags & IGNORABLE:
            name = TYPE_NAMES.get(kind, "unknown")
            raise UnknownEvent(f"event type {kind} ({name}) at {self._where()} can't be decoded; this version stops here")
        return 0

    cdef int _rotate(self, bytes body, bint artificial) except -1:
        event = control.rotate(self._place(), body, artificial=artificial)
        self._emit(event)
        self._forget_tables()
        if not self.from_file:
            self._enter(event.next_file, event.position)
        return 0

    cdef int _query(self, int kind, bytes body) except -1:
        cdef int fixed = 26 if kind == EXECUTE_LOAD_QUERY else 13  # LOAD DATA: its file's number and place follow
        cdef bytes text = None
        if kind == QUERY_COMPRESSED:
            text = self._inflate_text(body, control.text_start(body, fixed))
        event = control.query(self._place(), body, text, self.collations, fixed)
        if self.describe is not None and event.query != b"COMMIT":  # DDL may change what the table map does not say
            self.plans.clear()
            self.recent = None
        return self._emit(event)

    cdef bytes _inflate_text(self, bytes body, Py_ssize_t start):
        if start > len(body):
            raise IndexError("it is truncated")
        fault = inflate_event(&self.inflated, <uint8_t*> PyBytes_AS_STRING(body) + start, len(body) - start)
        check(fault)
        if fault != NONE:
            raise ValueError("its statement can't be inflated")
        return self.inflated.data[:self.inflated.size]

    # --- events of every transaction --------------------------------------------------------------------------------

    cdef int _gtid_mariadb(self, const uint8_t* body, const uint8_t* end) except -1:
        """sequence u64, domain u32, flags u8 (1 standalone, 32 DDL), more that nobody needs."""
        cdef char[64] gtid
        cdef char* o
        self._need(end - body, 13, "GTID")
        o = digits_of(gtid, le(body + 8, 4))
        o[0] = b"-"
        o = digits_of(o + 1, self.server_id)
        o[0] = b"-"
        o = digits_of(o + 1, le(body, 8))
        self._write_gtid(gtid, o - gtid, body[12] & 1, body[12] & 32, 0)
        return 0

    cdef int _gtid(self, int kind, const uint8_t* body, const uint8_t* end) except -1:
        """flags u8, source 16, number u64, 2 u8, committed and sequence i64 each, commit times in 7 bytes each."""
        cdef uint64_t committed = 0
        cdef char[64] gtid
        cdef char* o = gtid
        self._need(end - body, 25, "GTID")
        if kind == GTID:
            if self.source_bytes is None or memcmp(PyBytes_AS_STRING(self.source_bytes), body + 1, 16) != 0:
                self.source_bytes = body[1:17]
                self.source_text = str(UUID(bytes=self.source_bytes)).encode()
            memcpy(gtid, PyBytes_AS_STRING(self.source_text), 36)
            gtid[36] = b":"
            o = digits_of(gtid + 37, le(body + 17, 8))
        if end - body >= 49 and body[25] == 2:
            committed = le(body + 42, 7)
            if committed >> 55:  # the original server's time follows
                self._need(end - body, 56, "GTID")
                committed = le(body + 49, 7)
        self._write_gtid(gtid, o - gtid, False, False, committed)
        return 0

    cdef int _write_gtid(self, const char* gtid, size_t size, bint standalone, bint ddl, uint64_t committed) except -1:
        cdef char* o = put_str(self._begin(GTID_TAG, 4, size + 16), gtid, size)
        return self._complete(put_uint(put_bool(put_bool(o, standalone), ddl), committed))

    cdef bint _is_begin(self, const uint8_t* body, const uint8_t* end) noexcept:
        cdef Py_ssize_t text
        if end - body < 13:
            return False
        text = 13 + le(body + 11, 2) + body[8] + 1
        return end - body == text + 5 and memcmp(body + text, b"BEGIN", 5) == 0

    cdef int _begin_query(self, const uint8_t* body) except -1:
        """thread u32, seconds u32, length of schema u8, error u16, length of status u16, status, schema, NUL, BEGIN."""
        cdef size_t schema = body[8]
        cdef char* o = self._begin(QUERY_TAG, 5, schema + 32)
        o = put_str(o, <const char*> body + 13 + le(body + 11, 2), schema)
        memcpy(put_bin(o, 5), b"BEGIN", 5)
        o = put_uint(put_uint(o + 7, le(body, 4)), le(body + 9, 2))
        o[0] = <char> 0xC0
        return self._complete(o + 1)

    cdef int _xid(self, const uint8_t* body, const uint8_t* end) except -1:
        self._need(end - body, 8, "XID")
        return self._complete(put_uint(self._begin(XID_TAG, 1, 16), le(body, 8)))

    # --- compressed transactions ------------------------------------------------------------------------------------

    cdef int _begin_payload(self, const uint8_t* header, size_t size) except -1:
        self._find_place(TRANSACTION_PAYLOAD, size, <uint32_t> le(header + 13, 4), <uint16_t> le(header + 17, 2))
        self._need(size, HEADER + 1 + 4 * self.checksum, "TRANSACTION_PAYLOAD")
        if self.ack_wanted:
            self.ack = self.file, self.end
        self.payload = TransactionPayload(header[:HEADER], size - HEADER, checksum=self.checksum)
        return 0

    cdef int _payload(self, const uint8_t* p, size_t size) except -1:
        """Decode the events that the next piece makes complete."""
        cdef bytes data
        self.in_payload = True
        try:
            data = self.payload.feed(p[:size])
            self._events(<uint8_t*> PyBytes_AS_STRING(data), len(data), &self.inner)
            if self.payload_left == 0:
                data = self.payload.finish()
                self._events(<uint8_t*> PyBytes_AS_STRING(data), len(data), &self.inner)
                self.payload = None
                if self.inner.size:
                    raise ValueError("it ends inside an event")
        except (LookupError, ValueError) as error:
            raise self._corrupt("TRANSACTION_PAYLOAD", error) from error
        finally:
            self.in_payload = False
        return 0

    # --- rows -----------------------------------------------------------------------------------------------------

    cdef int _table_map(self, const uint8_t* body, const uint8_t* end) except -1:
        """Number of the table in 6 bytes, flags u16, and what `parse_table_map` reads: parsed once for each layout."""
        cdef uint64_t number
        cdef Py_ssize_t size = end - body - 8
        cdef Plan plan = self.recent
        self._need(size, 2, "TABLE_MAP")
        if plan is None or PyBytes_GET_SIZE(plan.layout) != size or memcmp(
            PyBytes_AS_STRING(plan.layout), body + 8, size
        ) != 0:
            layout = body[8:end - body]
            plan = self.plans.get(layout)
            if plan is None:
                plan = self._plan(layout)
                if len(self.plans) >= REMEMBERED:
                    self.plans.clear()
                self.plans[layout] = plan
            self.recent = plan
        number = le(body, 6)
        check(append(&self.numbers, &number, sizeof(number)))
        self.mapped.append(plan)
        return 0

    cdef Plan _plan(self, bytes layout):
        try:
            if self.wanted is not None and not self.wanted(*names_of(layout)):
                return Plan.unwanted(layout)
            table = parse_table_map(layout, self.flavor, self.collations)
        except (LookupError, ValueError) as error:
            raise self._corrupt("TABLE_MAP", error) from error
        if self.describe is not None:
            table = table.described_as(self.describe(table))
        return Plan.of(layout, table)

    cdef Plan _mapped(self, uint64_t number):
        """Find the statement's last table map of this number."""
        cdef const uint64_t* numbers = <const uint64_t*> self.numbers.data
        cdef Py_ssize_t i
        for i in range(self.numbers.size // sizeof(number) - 1, -1, -1):
            if numbers[i] == number:
                return <Plan> self.mapped[i]
        raise CorruptEvent(f"rows at {self._where()} belong to no table map; read from an earlier position")

    cdef int _forget_tables(self) except -1:
        self.numbers.size = 0
        self.mapped.clear()
        return 0

    cdef int _rows(self, int kind, const uint8_t* p, const uint8_t* end) except -1:
        """Number of the table, flags u16, version 2: size and extra data; column count, bitmaps of columns, images."""
        cdef uint64_t number
        cdef uint16_t flags
        cdef uint32_t columns
        cdef Fault fault
        cdef Plan plan
        cdef int action = rows_action(kind)
        cdef bint second_version = 30 <= kind <= 39 or kind >= 169, statement_end
        self._need(end - p, 8, "ROWS")
        number, flags = le(p, 6), <uint16_t> le(p + 6, 2)
        p += 8
        if second_version:
            self._need(end - p, 2, "ROWS")
            self._need(end - p, max(<Py_ssize_t> 2, <Py_ssize_t> le(p, 2)), "ROWS")
            p += le(p, 2)
        statement_end = flags & 1
        if number == 0xFFFFFF:  # no table: only the end of a statement
            return self._forget_tables()
        plan = self._mapped(number)
        if statement_end:
            self._forget_tables()
        if plan.table is None:
            return 0
        if plan.refused is not None:
            raise plan.refusal(f"{plan.refused} ({self._where()})")
        self._need(end - p, 3, "ROWS")
        columns = p[0] if p[0] < 0xFB else <uint32_t> le(p + 1, 2)
        p += 1 if p[0] < 0xFB else 3
        if columns != plan.count + plan.hidden:
            raise CorruptEvent(f"rows of {plan.name} at {self._where()} do not have the columns of their table map")
        self._write_rows(plan, kind, action, p, end, statement_end)
        return 0

    cdef int _write_rows(
        self, Plan plan, int kind, int action, const uint8_t* p, const uint8_t* end, bint statement_end
    ) except -1:
        cdef Rows_ rows
        cdef Fault fault
        cdef uint32_t i, columns = plan.count + plan.hidden, bitmap = (columns + 7) // 8
        cdef size_t counted, listed
        cdef char* o
        memset(&rows, 0, sizeof(rows))
        rows.sides = 2 if action == 1 else 1
        self._need(end - p, rows.sides * bitmap, "ROWS")
        rows.columns, rows.count, rows.hidden, rows.json_columns = plan.columns, plan.count, plan.hidden, plan.json_columns
        rows.scratch, rows.json = &self.scratch, &self.json
        for i in range(rows.sides):
            set_present(&rows.images[i], p + i * bitmap, columns)
        p += rows.sides * bitmap
        if kind == PARTIAL_UPDATE_ROWS:
            rows.images[1].partial = True
            self.json.size = 0
            if room(&self.json, 2 * sizeof(size_t) * plan.count) == NULL:
                raise MemoryError
            self.json.size = 2 * sizeof(size_t) * plan.count
        if kind >= 166:
            fault = inflate_event(&self.inflated, p, end - p)
            check(fault)
            if fault != NONE:
                raise CorruptEvent(f"rows of {plan.name} at {self._where()} can't be inflated")
            p = <const uint8_t*> self.inflated.data
            end = p + self.inflated.size
        o = self._begin(ROWS_TAG, 6, 64)
        o = put_str(o, PyBytes_AS_STRING(plan.fingerprint), PyBytes_GET_SIZE(plan.fingerprint))
        o = put_str(o, PyBytes_AS_STRING(ACTIONS[action]), 6)
        counted = o - self.out.data  # the number of images shows when they are written
        o = put_bool(put_bool(o + 5, rows.images[0].present == NULL and rows.images[1].present == NULL), statement_end)
        listed = o - self.out.data
        self.out.size = listed + 5
        fault = write_images(&rows, p, end, &self.out)
        if fault != NONE:
            check(fault)
            column = plan.table.columns[rows.at].name or rows.at
            raise FAULT_CLASSES.get(fault, CorruptEvent)(f"column {column} of {plan.name} at {self._where()}: {FAULTS[fault]}")
        self.out.data[counted], self.out.data[listed] = <char> 0xCE, <char> 0xDD
        put_big(self.out.data + counted + 1, rows.written, 4)
        put_big(self.out.data + listed + 1, rows.written, 4)
        self.images += rows.written
        if plan.used != self.calls:
            plan.used = self.calls
            self.tables[plan.table.fingerprint] = plan.table
        return self._complete(self.out.data + self.out.size)

    cdef int _fragment(self, bytes body) except -1:
        """Put a large rows event of MariaDB ≥ 12.3 together from its parts."""
        total, number, size, part = control.partial_row_data(body)
        if number != self.fragment + 1 or number > total:
            raise ValueError(f"part {number} of {total} follows part {self.fragment}")
        if number == 1:
            self.fragments.size, self.announced = 0, size
        check(append(&self.fragments, PyBytes_AS_STRING(part), PyBytes_GET_SIZE(part)))
        self.fragment = 0 if number == total else number
        if number == total:
            self._joined(<const uint8_t*> self.fragments.data, self.fragments.size)
        return 0

    cdef int _joined(self, const uint8_t* p, size_t size) except -1:
        """Decode the rows event that the parts make, a whole one with its header."""
        if size < HEADER or le(p + 9, 4) != size or rows_action(p[4]) < 0 or self.announced not in (0, size):
            raise ValueError("its parts make no rows event")
        return self._rows(p[4], p + HEADER, p + size)


cdef dict FAULT_CLASSES = {NO_IMAGE_BEFORE: PartialRowImage}


cdef void set_present(Image* image, const uint8_t* bitmap, uint32_t columns) noexcept:
    cdef uint32_t i, present = 0
    for i in range(columns):
        present += bit(bitmap, i)
    image.present = bitmap
    if present == columns:
        image.present = NULL
    image.null_bytes = (present + 7) // 8


def crc32(const uint8_t[::1] data not None):
    """Return the checksum that zlib.crc32 returns."""
    return crc32_of(&data[0] if data.shape[0] else NULL, data.shape[0])
