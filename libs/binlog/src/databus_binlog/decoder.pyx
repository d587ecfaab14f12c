# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language=c++
"""Bytes of the replication protocol or of a binlog file in, events out.

One `feed()` per chunk does everything: packets → events → checksum → rows. The events that come with every transaction
are written straight into one buffer, as msgpack; no Python object is made for them. The others take the way through
control.py, and join them there. A row's path:

    feed ─► framing.pxi ─► _event ─► _rows ─► rows.pxi   row images, laid out by plan.pxi
            packets, files    │                text.pxi, strings.pxi, json.pxi, partial.pxi   values as text
                              └────► transactions.pxi, control.py
                                       all of them write by records.pxi
Of an event above the limit only the beginning comes to be seen, by `_beginning`.
The layouts are those of libs/mysql/binlog/event/*.h in MySQL's source and sql/log_event.h in MariaDB's.
"""

from databus_binlog import charsets, control
from databus_binlog.collations import DEFAULT_COLLATIONS
from databus_binlog.errors import (
    CorruptEvent, MissingMetadata, OversizedStatement, PartialRowImage, UnknownEvent, UnsupportedColumn, from_server,
)
from databus_binlog.event_types import SAY_NOTHING, EventType as E, name_of
from databus_binlog.events import Events, Stop, encode_event
from databus_binlog.json_diff import apply_diffs
from databus_binlog.payload import PIECE as PAYLOAD_PIECE, TransactionPayload
from databus_binlog.table_map import NOT_LOGGED, FieldType as T, names_of, parse_table_map

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport SIZE_MAX, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memchr, memcmp, memcpy, memmove, memset

cdef int QUERY = E.QUERY, STOP = E.STOP, ROTATE = E.ROTATE, FORMAT_DESCRIPTION = E.FORMAT_DESCRIPTION, XID = E.XID
cdef int EXECUTE_LOAD_QUERY = E.EXECUTE_LOAD_QUERY, TABLE_MAP = E.TABLE_MAP, INCIDENT = E.INCIDENT
cdef int HEARTBEAT = E.HEARTBEAT, HEARTBEAT_V2 = E.HEARTBEAT_V2, PREVIOUS_GTIDS = E.PREVIOUS_GTIDS
cdef int GTID = E.GTID, ANONYMOUS_GTID = E.ANONYMOUS_GTID, GTID_MARIADB = E.GTID_MARIADB, GTID_LIST = E.GTID_LIST
cdef int PARTIAL_UPDATE_ROWS = E.PARTIAL_UPDATE_ROWS, TRANSACTION_PAYLOAD = E.TRANSACTION_PAYLOAD
cdef int START_ENCRYPTION = E.START_ENCRYPTION, QUERY_COMPRESSED = E.QUERY_COMPRESSED
cdef int WRITE_ROWS_V1 = E.WRITE_ROWS_V1, DELETE_ROWS_V1 = E.DELETE_ROWS_V1
cdef int WRITE_ROWS = E.WRITE_ROWS, DELETE_ROWS = E.DELETE_ROWS
cdef int FIRST_COMPRESSED = E.WRITE_ROWS_COMPRESSED_V1, LAST_COMPRESSED = E.DELETE_ROWS_COMPRESSED
cdef int SECOND_COMPRESSED = E.WRITE_ROWS_COMPRESSED, PARTIAL_ROW_DATA = E.PARTIAL_ROW_DATA
cdef size_t PIECE = PAYLOAD_PIECE

include "text.pxi"
include "buffer.pxi"
include "checksum.pxi"
include "inflate.pxi"
include "strings.pxi"
include "json.pxi"
include "rows.pxi"
include "partial.pxi"
include "plan.pxi"
include "framing.pxi"
include "records.pxi"
include "tables.pxi"
include "transactions.pxi"

cdef enum:
    ROWS_TAG = 8  # of the classes in events.py
    OVERSIZED_ROWS_TAG = 11
    STATEMENT_END = 1

CONTROL = {
    E.GTID_TAGGED: control.gtid_tagged, E.XA_PREPARE: control.xa_prepare, E.ROWS_QUERY: control.rows_query,
    E.ANNOTATE_ROWS: control.annotate_rows,
}

#: what may go by above the limit, beside rows
OPTIONAL = {E.ROWS_QUERY, E.ANNOTATE_ROWS, E.PARTIAL_ROW_DATA} | SAY_NOTHING - {E.START_ENCRYPTION}

FAULTS = {
    TRUNCATED: "the row is truncated", BAD_JSON: "malformed binary JSON",
    BAD_TEXT: "bytes that its character set does not have", BAD_COMPRESSION: "its compressed value can't be inflated",
    BAD_DIFF: "its JSON diff does not fit the value before",
    NO_COLUMNS: "rows without any column; set binlog_row_image=FULL",
    NO_IMAGE_BEFORE: "a JSON diff without the value before; set binlog_row_image=FULL",
}
FAULT_CLASSES = {NO_IMAGE_BEFORE: PartialRowImage, NO_COLUMNS: PartialRowImage}

cdef tuple ACTIONS = (b"insert", b"update", b"delete")


cdef inline int rows_action(int kind) noexcept:
    """Return 0, 1, 2 for an insert, update, delete event, else -1: versions 1 and 2, and MariaDB's compressed ones."""
    if WRITE_ROWS_V1 <= kind <= DELETE_ROWS_V1:
        return kind - WRITE_ROWS_V1
    if WRITE_ROWS <= kind <= DELETE_ROWS:
        return kind - WRITE_ROWS
    if FIRST_COMPRESSED <= kind <= LAST_COMPRESSED:
        return (kind - FIRST_COMPRESSED) % 3
    return 1 if kind == PARTIAL_UPDATE_ROWS else -1


@cython.final  # so that the compiler can inline its methods
cdef class Decoder(Recorder):
    """Turns a dump's packets (`feed`) or a file's content (`feed_file`) into events; one decoder per stream or file.

    flavor: "mysql" or "mariadb"; a FORMAT_DESCRIPTION event overrules it.
    wanted(schema, table): rows of other tables are skipped undecoded. Default: all are wanted.
    collations: id → character set name, as the server has them (Session.collations).
    describe(table_map): called once for each new layout of a wanted table; returns the TableMap, completed where the
        server logs too little (binlog_row_metadata). It is asked again after a statement that may be DDL.
    by_statement: a call of `feed` ends behind each such statement, so that what it changes can be told to `describe`
        before the next call, which `more` asks for.
    file, offset: where the first bytes stand, if known.
    semi_sync: the server was asked for semi-sync, so its packets say whether it waits for an acknowledgement.
    row_limit: bytes of the largest rows event that is decoded, None for any. A larger one is not even held in memory:
        OversizedRows comes in its place. A larger RowsQuery is left out, a larger statement raises OversizedStatement.
    """
    cdef str flavor
    cdef dict collations
    cdef Tables maps
    cdef dict tables                  # those of the rows in the output, by fingerprint
    cdef uint64_t calls               # of feed: marks the plans of the tables above
    cdef bint format_known, checksum, by_statement
    cdef uint32_t next_position       # in the event's header
    cdef object payload               # the compressed transaction under way, and the beginning of an event in it
    cdef Buffer inner
    cdef bint in_payload
    cdef object parts                 # of one large rows event, and whether they are still incomplete
    cdef bint in_parts
    cdef uint32_t crc                 # of the event above the limit that goes by
    cdef Buffer inflated, json, scratch
    cdef tuple ack

    def __init__(
        self, *, flavor="mysql", wanted=None, collations=None, describe=None, by_statement=False, file="", offset=0,
        semi_sync=False, row_limit=None,
    ):
        self.flavor = flavor
        self.collations = dict(DEFAULT_COLLATIONS if collations is None else collations)
        self.maps = Tables(wanted, describe, self.collations)
        self.limit = max(row_limit, HEADER) if row_limit else SIZE_MAX
        self.parts = control.Parts(self.limit)
        self.by_statement = by_statement
        self.semi_sync = semi_sync
        self._enter(file, offset)

    def __dealloc__(self):
        free(self.inner.data)
        free(self.inflated.data)
        free(self.json.data)
        free(self.scratch.data)

    def feed(self, data, Py_ssize_t size=-1):
        """Decode the next `size` bytes of a dump's connection. Events before a failure come first, then it is raised."""
        return self._decode(data, size)

    def feed_file(self, data):
        """Decode the next bytes of a binlog file."""
        self.from_file = True
        return self._decode(data, -1)

    def finish(self):
        """Say that a file is at its end: raise what is wrong with it, also an event that is cut off."""
        if self.failure is not None:
            raise self.failure
        if self.offset < MAGIC_SIZE:
            raise CorruptEvent(f"{self.file or 'this'} is no binlog file: it is shorter than the head of one")
        if self.pending or self.in_parts:
            raise CorruptEvent(f"{self.file} ends inside the event at {self.offset}; it is cut off or still written to")

    def take_ack(self):
        """Return file and offset of the last event since the last call that the server waits for, or None."""
        ack, self.ack = self.ack, None
        return ack

    cdef object _decode(self, object data, Py_ssize_t size):
        cdef Py_buffer view
        if self.failure is not None:
            raise self.failure
        self._clear()
        self.tables = {}
        self.calls += 1
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            self._frame(<const uint8_t*> view.buf, view.len if size < 0 else min(size, view.len))
        except BaseException as error:  # also of a hook: what it left half done is not gone on with
            self.failure = error
            if not self.count or not isinstance(error, Exception):
                raise
        finally:
            PyBuffer_Release(&view)
        return Events(self._handed_out(), self.count, self.images, self.tables)

    cdef bytes _handed_out(self):
        """Take the output; keep no more memory than small events need."""
        cdef bytes data
        trim(&self.rest)
        trim(&self.inner)
        trim(&self.inflated)
        trim(&self.json)
        trim(&self.scratch)
        data = self._taken()
        self.out.size = 0
        trim(&self.out)
        return data

    # --- events ---------------------------------------------------------------------------------------------------

    cdef int _event(self, const uint8_t* p, size_t size) except -1:
        cdef int kind = p[4]
        cdef const uint8_t* end = p + size
        self._header(p, size)
        if not self.in_payload:
            if kind == FORMAT_DESCRIPTION:
                return self._format_description(p[:size])
            end -= self._checked(p, size)
        self._dispatch(kind, p + HEADER, end, <uint16_t> le(p + 17, 2))
        if self.ack_wanted and not self.in_payload:
            self.ack = self.file, self.end
        return 0

    cdef inline int _header(self, const uint8_t* p, size_t size) except -1:
        """Time u32, type u8, server id u32, size u32, next position u32, flags u16."""
        cdef int kind = p[4]
        self.time = <uint32_t> le(p, 4)
        self.server_id = <uint32_t> le(p + 5, 4)
        if not self.in_payload:  # else the place is that of the whole transaction
            self.next_position = <uint32_t> le(p + 13, 4)
            self._find_place(kind, size, self.next_position, <uint16_t> le(p + 17, 2))
            if self.in_parts and kind != PARTIAL_ROW_DATA and kind != HEARTBEAT and kind != HEARTBEAT_V2:
                raise self._unfinished()
        return 0

    cdef object _unfinished(self):
        return CorruptEvent(f"a rows event in parts ends before its last part at {self._where()}")

    cdef int _dispatch(self, int kind, const uint8_t* body, const uint8_t* end, uint16_t flags) except -1:
        if kind == TABLE_MAP:
            return self.maps.add(self, body, end, self.flavor)
        if rows_action(kind) >= 0:
            return self._rows(kind, body, end)
        if kind == XID:
            return write_xid(self, body, end)
        if kind == GTID_MARIADB:
            return write_gtid_mariadb(self, body, end)
        if kind == GTID or kind == ANONYMOUS_GTID:
            return write_gtid(self, kind, body, end)
        if kind == QUERY and is_begin(body, end):
            return write_begin(self, body)
        try:
            return self._control(kind, body[:end - body], flags)
        except (LookupError, ValueError) as error:
            raise self._corrupt(kind, error) from error

    cdef int _checked(self, const uint8_t* p, size_t size) except -1:
        """Verify the checksum; return its size."""
        if not self.format_known:  # the first ROTATE comes before we are told, with a checksum or without
            return 4 if size >= HEADER + 4 and crc32_of(p, size - 4) == le(p + size - 4, 4) else 0
        if not self.checksum:
            return 0
        if size < HEADER + 4 or crc32_of(p, size - 4) != le(p + size - 4, 4):
            raise self._wrong_checksum(p[4])
        return 4

    cdef object _wrong_checksum(self, int kind):
        return CorruptEvent(f"wrong checksum of {name_of(kind)} event at {self._where()}; check disk and network")

    cdef int _format_description(self, bytes event) except -1:
        try:
            description, self.flavor = control.format_description(self._place(), event)
        except (LookupError, ValueError) as error:
            raise self._corrupt(FORMAT_DESCRIPTION, error) from error
        self.format_known, self.checksum = True, description.checksum
        self.maps.forget()
        return self._emit(description)

    cdef int _control(self, int kind, bytes body, uint16_t flags) except -1:
        if kind in CONTROL:
            return self._emit(CONTROL[kind](self._place(), body))
        if kind == HEARTBEAT or kind == HEARTBEAT_V2:
            return self._heartbeat(kind, body)
        if kind == QUERY or kind == QUERY_COMPRESSED or kind == EXECUTE_LOAD_QUERY:
            return self._query(kind, body)
        if kind == ROTATE:
            return self._rotate(body, flags & ARTIFICIAL)
        if kind == STOP:
            return self._emit(Stop(*self._place()))
        if kind == PARTIAL_ROW_DATA:
            return self._part(body, len(body))
        if kind == INCIDENT:
            raise control.incident(self._place(), body)
        if kind == START_ENCRYPTION and self.from_file:
            raise UnknownEvent(f"{self.file} is encrypted from {self._where()} on; read it through the server")
        if kind not in SAY_NOTHING and not flags & IGNORABLE:
            raise UnknownEvent(
                f"event type {kind} ({name_of(kind)}) at {self._where()} can't be decoded; this version stops here"
            )
        return 0

    cdef int _heartbeat(self, int kind, bytes body) except -1:
        if kind == HEARTBEAT_V2:
            event = control.heartbeat_v2(self._place(), body)
        else:
            event = control.heartbeat(self._place(), body, self.flavor == "mariadb" and self.next_position == 0)
        if event.file == self.file:
            self.offset = event.end
        return self._emit(event)

    cdef int _rotate(self, bytes body, bint artificial) except -1:
        event = control.rotate(self._place(), body, artificial=artificial)
        self._emit(event)
        self.maps.forget()
        if not self.from_file:
            self._enter(event.next_file, event.position)
        return 0

    cdef int _query(self, int kind, bytes body) except -1:
        cdef int fixed = 26 if kind == EXECUTE_LOAD_QUERY else 13  # LOAD DATA: its file's number and place follow
        cdef Py_ssize_t start
        text = None
        if kind == QUERY_COMPRESSED:
            start = control.text_start(body, fixed)
            if start > len(body):
                raise IndexError("it is truncated")
            self._limit_statement(kind, inflated_size(<const uint8_t*> PyBytes_AS_STRING(body) + start, len(body) - start))
            self._inflate(<const uint8_t*> PyBytes_AS_STRING(body) + start, len(body) - start)
            text = self.inflated.data[:self.inflated.size]
        event = control.query(self._place(), body, text, self.collations, fixed)
        if event.query != b"COMMIT":
            self.maps.ask_again()
            self.paused = self.by_statement
        return self._emit(event)

    cdef int _inflate(self, const uint8_t* p, size_t size) except -1:
        cdef Fault fault = inflate_event(&self.inflated, p, size)
        check(fault)
        if fault != NONE:
            raise ValueError("it can't be inflated")
        return 0

    # --- compressed transactions ------------------------------------------------------------------------------------

    cdef int _begin_payload(self, const uint8_t* header, size_t size) except -1:
        self._find_place(TRANSACTION_PAYLOAD, size, <uint32_t> le(header + 13, 4), <uint16_t> le(header + 17, 2))
        self._need(size, HEADER + 1 + 4 * self.checksum, TRANSACTION_PAYLOAD)
        self.payload = TransactionPayload(header[:HEADER], size - HEADER, checksum=self.checksum)
        return 0

    cdef int _payload(self, const uint8_t* p, size_t size) except -1:
        """Decode the events that the next piece makes complete."""
        try:
            data = self.payload.feed(p[:size])
            if self.payload_left == 0:
                data += self.payload.finish()
        except (LookupError, ValueError) as error:
            raise self._corrupt(TRANSACTION_PAYLOAD, error) from error
        self._payload_events(data)
        if self.payload_left == 0:
            if self.inner.size:
                raise self._corrupt(TRANSACTION_PAYLOAD, "it ends inside an event")
            self.payload = None
            if self.ack_wanted:
                self.ack = self.file, self.end
        return 0

    cdef int _payload_events(self, bytes data) except -1:
        self.in_payload = True
        try:
            self._events(<const uint8_t*> PyBytes_AS_STRING(data), len(data), &self.inner)
        finally:
            self.in_payload = False
        return 0

    # --- events above the limit -------------------------------------------------------------------------------------

    cdef bint _is_limited(self, const uint8_t* header, size_t size) except -1:
        """Say whether an event may go by. Statements may not; of all others none is large."""
        cdef int kind = header[4]
        if kind == QUERY or kind == QUERY_COMPRESSED or kind == EXECUTE_LOAD_QUERY:
            self._header(header, size)
            self._limit_statement(kind, size)
        self.crc = crc32_of(header, HEADER)
        return rows_action(kind) >= 0 or kind in OPTIONAL

    cdef int _limit_statement(self, int kind, size_t size) except -1:
        if size > self.limit:
            raise OversizedStatement(
                f"{name_of(kind)} event at {self._where()} is a statement of {size} bytes, above row_limit "
                f"({self.limit}); raise it to read on"
            )
        return 0

    cdef int _skip(self, const uint8_t* p, size_t size) except -1:
        self.crc = crc32_on(self.crc, p, size)
        return 0

    cdef int _beginning(self, const uint8_t* p, size_t size, size_t whole) except -1:
        """An event has gone by. What says nothing of data, or only what caused it, is not told of."""
        cdef int kind = p[4]
        cdef size_t checksum = 4 if self.checksum and not self.in_payload else 0
        self._header(p, whole)
        if checksum and self.crc != CHECKED:
            raise self._wrong_checksum(kind)
        self._need(whole, HEADER + checksum, kind)
        size = min(size, whole - checksum)
        if rows_action(kind) >= 0:
            self._oversized(kind, p + HEADER, p + size, whole)
        elif kind == PARTIAL_ROW_DATA:
            try:
                self._part(p[HEADER:size], whole - checksum - HEADER)
            except (LookupError, ValueError) as error:
                raise self._corrupt(kind, error) from error
        if self.ack_wanted and not self.in_payload:
            self.ack = self.file, self.end
        return 0

    cdef int _oversized(self, int kind, const uint8_t* p, const uint8_t* end, size_t size) except -1:
        """Tell of rows that went by, by the beginning of their event's body."""
        cdef bint statement_end
        cdef Plan plan = self._table_of(kind, p, end, &statement_end)
        return 0 if plan is None else self._write_oversized(plan, kind, size, statement_end)

    cdef int _write_oversized(self, Plan plan, int kind, size_t size, bint statement_end) except -1:
        cdef char* o = self._begin(OVERSIZED_ROWS_TAG, 4, 64)
        o = put_str(o, PyBytes_AS_STRING(plan.fingerprint), PyBytes_GET_SIZE(plan.fingerprint))
        o = put_str(o, PyBytes_AS_STRING(ACTIONS[rows_action(kind)]), 6)
        self._tell(plan)
        return self._complete(put_bool(put_uint(o, size), statement_end))

    # --- rows -----------------------------------------------------------------------------------------------------

    cdef int _part(self, bytes body, size_t size) except -1:
        """Put a large rows event of MariaDB ≥ 12.3 together from its parts: `body` is all or the beginning of one."""
        cdef bytearray event
        cdef const uint8_t* p
        self.parts.add(body, size)
        self.in_parts = not self.parts.complete
        if self.in_parts:
            return 0
        event, size = self.parts.take()
        p = <const uint8_t*> PyByteArray_AS_STRING(event)
        if len(event) < HEADER or le(p + 9, 4) != size or rows_action(p[4]) < 0:
            raise ValueError("its parts make no rows event")
        if <size_t> len(event) < size:
            return self._oversized(p[4], p + HEADER, p + len(event), size)
        return self._rows(p[4], p + HEADER, p + len(event))

    cdef int _rows(self, int kind, const uint8_t* p, const uint8_t* end) except -1:
        """Number of the table, flags u16, version 2: size and extra data; column count, bitmaps of columns, images."""
        cdef bint statement_end
        cdef uint32_t columns
        cdef Plan plan = self._table_of(kind, p, end, &statement_end)
        if plan is None:
            return 0
        p += 8
        if kind < FIRST_COMPRESSED and kind > DELETE_ROWS_V1 or kind >= SECOND_COMPRESSED:  # version 2
            self._need(end - p, 2, kind)
            self._need(end - p, max(<Py_ssize_t> 2, <Py_ssize_t> le(p, 2)), kind)
            p += le(p, 2)
        self._need(end - p, 1, kind)
        self._need(end - p, 1 if p[0] < 0xFB else 3, kind)
        columns = p[0] if p[0] < 0xFB else <uint32_t> le(p + 1, 2)
        p += 1 if p[0] < 0xFB else 3
        if columns != plan.count + plan.hidden:
            raise CorruptEvent(f"rows of {plan.name} at {self._where()} do not have the columns of their table map")
        self._need(end - p, (columns + 7) // 8 * (2 if rows_action(kind) == 1 else 1), kind)
        return self._write_rows(plan, kind, p, end, statement_end)

    cdef inline Plan _table_of(self, int kind, const uint8_t* p, const uint8_t* end, bint* statement_end):
        """Find the table of rows by its number u48 and flags u16; None if nobody wants them."""
        cdef uint64_t number
        cdef Plan plan
        self._need(end - p, 8, kind)
        number, statement_end[0] = le(p, 6), le(p + 6, 2) & STATEMENT_END
        plan = self.maps.find(number)
        if statement_end[0]:
            self.maps.forget()
        if plan is None:
            if statement_end[0] and (number == 0xFFFFFF or number == 0xFFFFFFFFFFFF):  # just the statement's end
                return None
            raise CorruptEvent(f"rows at {self._where()} belong to no table map; read from an earlier position")
        if plan.table is None:
            return None
        if plan.refused is not None:
            raise plan.refusal(f"{plan.refused} ({self._where()})")
        return plan

    cdef int _write_rows(self, Plan plan, int kind, const uint8_t* p, const uint8_t* end, bint statement_end) except -1:
        """Write a rows event: head, the table's fingerprint, action, count, whether it is complete, the images."""
        cdef RowImages rows
        cdef Fault fault
        cdef size_t counted, listed
        cdef char* o
        p = self._lay_out(&rows, plan, kind, p)
        if kind >= FIRST_COMPRESSED:
            if inflated_size(p, end - p) > self.limit:
                return self._write_oversized(plan, kind, inflated_size(p, end - p), statement_end)
            try:
                self._inflate(p, end - p)
            except ValueError as error:
                raise self._corrupt(kind, error) from error
            p = <const uint8_t*> self.inflated.data
            end = p + self.inflated.size
        o = self._begin(ROWS_TAG, 6, 64)
        o = put_str(o, PyBytes_AS_STRING(plan.fingerprint), PyBytes_GET_SIZE(plan.fingerprint))
        o = put_str(o, PyBytes_AS_STRING(ACTIONS[rows_action(kind)]), 6)
        counted = o - self.out.data  # the number of images shows when they are written
        o = put_bool(put_bool(o + 5, rows.images[0].present == NULL and rows.images[1].present == NULL), statement_end)
        listed = o - self.out.data
        self.out.size = listed + 5
        fault = write_images(&rows, p, end, &self.out)
        if fault == TOO_LARGE:
            self.out.size = self.good
            return self._write_oversized(plan, kind, rows.inflated, statement_end)
        self._raise_fault(fault, plan, rows.at)
        self.out.data[counted], self.out.data[listed] = <char> 0xCE, <char> 0xDD
        put_big32(self.out.data + counted + 1, <uint32_t> rows.written)
        put_big32(self.out.data + listed + 1, <uint32_t> rows.written)
        self.images += rows.written
        self._tell(plan)
        return self._complete(self.out.data + self.out.size)

    cdef int _tell(self, Plan plan) except -1:
        """Hand the table out with the events."""
        if plan.used != self.calls:
            plan.used = self.calls
            self.tables[plan.table.fingerprint] = plan.table
        return 0

    cdef const uint8_t* _lay_out(self, RowImages* rows, Plan plan, int kind, const uint8_t* p) except NULL:
        """Say how the images are to be read; return what follows the bitmaps of present columns."""
        cdef uint32_t i, columns = plan.count + plan.hidden, bitmap = (columns + 7) // 8
        memset(rows, 0, sizeof(RowImages))
        rows.columns, rows.count, rows.hidden, rows.limit = plan.columns, plan.count, plan.hidden, self.limit
        rows.json_columns, rows.json, rows.scratch = plan.json_columns, &self.json, &self.scratch
        rows.sides = 2 if rows_action(kind) == 1 else 1
        for i in range(rows.sides):
            set_present(&rows.images[i], p + i * bitmap, columns)
        if kind == PARTIAL_UPDATE_ROWS:
            rows.images[1].partial = True
            self.json.size = 0
            if room(&self.json, 2 * sizeof(size_t) * plan.count) == NULL:
                raise MemoryError
            self.json.size = 2 * sizeof(size_t) * plan.count
        return p + rows.sides * bitmap

    cdef int _raise_fault(self, Fault fault, Plan plan, uint32_t at) except -1:
        check(fault)
        if fault != NONE:
            column = plan.table.columns[at].name or at
            failure = FAULT_CLASSES.get(fault, CorruptEvent)
            raise failure(f"column {column} of {plan.name} at {self._where()}: {FAULTS[fault]}")
        return 0


def crc32(const uint8_t[::1] data not None):
    """Return the checksum that zlib.crc32 returns."""
    return crc32_of(&data[0] if data.shape[0] else NULL, data.shape[0])
