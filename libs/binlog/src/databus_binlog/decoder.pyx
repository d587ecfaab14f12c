"""Turns bytes of the replication protocol or of a binlog file into events.

A call of `feed()` decodes a chunk: packets → events → checksum → rows. The events that every transaction has are
written directly into one buffer as msgpack, without a Python object. Rare events are parsed by control.py and appended
to the same buffer. The path of a row:

    framing ─► Decoder.event ─► rows_event ─► row_images: the images of the rows
    packets,      │               │             fixed_values, charset_text, binary_json, partial_json: values as text
    files         │               └─ tables: finds the table's table_plan, which says how its columns are stored
                  └─► transactions, control.py: all other events

The results go into event_writer's output. The layouts of events are those of libs/mysql/binlog/event/*.h in MySQL's
source and sql/log_event.h in MariaDB's.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING
from databus_binlog.buffer cimport Buffer, trim
from databus_binlog.byte_order cimport le
from databus_binlog.checksum cimport CRC32_RESIDUE, crc32_continued, crc32_of
from databus_binlog.event_writer cimport ARTIFICIAL, IGNORABLE, EventWriter
from databus_binlog.framing cimport HEADER, MAGIC_SIZE
from databus_binlog.inflate cimport inflated_size, inflated_statement
from databus_binlog.rows_event cimport RowsDecoder, rows_action
from databus_binlog.tables cimport Tables
from databus_binlog.transactions cimport is_begin, write_begin, write_gtid, write_gtid_mariadb, write_xid
from libc.stdint cimport SIZE_MAX, uint8_t, uint16_t, uint32_t
from libc.stdlib cimport free

from databus_binlog import control
from databus_binlog.collations import DEFAULT_COLLATIONS
from databus_binlog.errors import CorruptEvent, OversizedStatement, UnknownEvent
from databus_binlog.event_types import SKIPPED, EventType as E, name_of
from databus_binlog.events import Events, Stop
from databus_binlog.payload import TransactionPayload

cdef int QUERY = E.QUERY, STOP = E.STOP, ROTATE = E.ROTATE, FORMAT_DESCRIPTION = E.FORMAT_DESCRIPTION, XID = E.XID
cdef int EXECUTE_LOAD_QUERY = E.EXECUTE_LOAD_QUERY, TABLE_MAP = E.TABLE_MAP, INCIDENT = E.INCIDENT
cdef int HEARTBEAT = E.HEARTBEAT, HEARTBEAT_V2 = E.HEARTBEAT_V2
cdef int GTID = E.GTID, ANONYMOUS_GTID = E.ANONYMOUS_GTID, GTID_MARIADB = E.GTID_MARIADB
cdef int TRANSACTION_PAYLOAD = E.TRANSACTION_PAYLOAD, PARTIAL_ROW_DATA = E.PARTIAL_ROW_DATA
cdef int START_ENCRYPTION = E.START_ENCRYPTION, QUERY_COMPRESSED = E.QUERY_COMPRESSED

CONTROL = {
    E.GTID_TAGGED: control.gtid_tagged, E.XA_PREPARE: control.xa_prepare, E.ROWS_QUERY: control.rows_query,
    E.ANNOTATE_ROWS: control.annotate_rows,
}

#: types of events, besides rows, that are skipped if they are larger than row_limit; not START_ENCRYPTION, which is an
#: error in a file
SKIPPED_ABOVE_LIMIT = {E.ROWS_QUERY, E.ANNOTATE_ROWS, E.PARTIAL_ROW_DATA} | SKIPPED - {E.START_ENCRYPTION}


@cython.final  # so that the compiler can inline its methods
cdef class Decoder(EventWriter):
    """Turns a dump's packets (`feed`) or a file's content (`feed_file`) into events; one decoder per stream or file.

    flavor: "mysql" or "mariadb", to be assumed until a FORMAT_DESCRIPTION event shows the server's flavor.
    wanted(schema, table): rows of tables for which it returns False are skipped undecoded. Default: all are wanted.
    collations: id → character set name, as the server has them (Session.collations). Default:
        DEFAULT_COLLATIONS.
    describe(table_map): called once for each new layout of a wanted table; returns the TableMap, completed where the
        server logs too little (binlog_row_metadata). It is called again after a statement that may be DDL.
    by_statement: a call of `feed` ends after each statement that may be DDL (not inside a compressed transaction), so
        that the caller can act on the statement before `describe` is called for the rows that follow. `more` is then
        true.
    file, offset: the position of the first bytes, if known.
    semi_sync: the session is semi-synchronous: packets show whether the server expects an acknowledgement.
    row_limit: bytes of the largest rows event that is decoded, None for any. A larger one is not kept in memory:
        OversizedRows replaces it. A larger RowsQuery is skipped, a larger statement raises OversizedStatement.
    """
    cdef str flavor
    cdef dict collations
    cdef RowsDecoder rows
    cdef bint format_known  # a FORMAT_DESCRIPTION was read
    cdef str version  # the server's, from FORMAT_DESCRIPTION
    cdef bint checksum  # the file's events end with a CRC-32
    cdef bint by_statement
    cdef uint32_t next_position  # offset of the next event, as the current event's header has it
    cdef object transaction  # TransactionPayload: the compressed transaction that is being read
    cdef Buffer inner  # an incomplete event of that transaction
    cdef bint in_payload  # the current event comes from that transaction
    cdef uint32_t crc  # of the event that is being skipped
    cdef tuple ack  # file and offset for take_ack(), or None

    def __init__(
        self, *, flavor="mysql", wanted=None, collations=None, describe=None, by_statement=False, file="", offset=0,
        semi_sync=False, row_limit=None,
    ):
        self.flavor, self.version = flavor, ""
        self.collations = dict(DEFAULT_COLLATIONS if collations is None else collations)
        self.limit = max(row_limit, HEADER) if row_limit else SIZE_MAX
        self.rows = RowsDecoder(Tables(wanted, describe, self.collations), self.limit)
        self.by_statement = by_statement
        self.semi_sync = semi_sync
        self.enter(file, offset)

    def __dealloc__(self):
        free(self.inner.data)

    def feed(self, data, Py_ssize_t size=-1):
        """Decode the next bytes from a dump's connection: the first `size` of `data`, by default all. Return Events.

        If decoding fails after some events, this call returns those events, and the next call raises the error.
        """
        return self.decode(data, size)

    def feed_file(self, data):
        """Decode the next bytes of a binlog file, like `feed`."""
        self.from_file = True
        return self.decode(data, -1)

    def finish(self):
        """Raise the pending error, or CorruptEvent if the file is truncated."""
        if self.failure is not None:
            raise self.failure
        if self.offset < MAGIC_SIZE:
            raise CorruptEvent(f"{self.file or 'the input'} is not a binlog file: it is shorter than the magic number")
        if self.pending or self.rows.in_parts:
            raise CorruptEvent(
                f"{self.file or 'the input'} ends inside the event at {self.offset}; the file is truncated, or the server still"
                " writes to it"
            )

    def take_ack(self):
        """Return the file and offset to acknowledge; None if the server has not asked for it since the last call."""
        ack, self.ack = self.ack, None
        return ack

    cdef object decode(self, object data, Py_ssize_t size):
        cdef Py_buffer view
        if self.failure is not None:
            raise self.failure
        self.clear()
        self.rows.begin_output()
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            self.frame(<const uint8_t*> view.buf, view.len if size < 0 else min(size, view.len))
        except BaseException as error:  # also an error of `wanted` or `describe`: decoding can't resume inside an event
            self.failure = error
            if not self.count or not isinstance(error, Exception):
                raise
        finally:
            PyBuffer_Release(&view)
        return self.take_events()

    cdef object take_events(self):
        """Return the output, and release memory that only large events need."""
        cdef bytes data = self.take_output()
        trim(&self.rest)
        trim(&self.inner)
        self.rows.trim()
        self.out.size = 0
        trim(&self.out)
        return Events(data, self.count, self.images, self.rows.tables)

    # --- events -------------------------------------------------------------------------------------------------------

    cdef int event(self, const uint8_t* p, size_t size) except -1:
        cdef int kind = p[4]
        cdef const uint8_t* end = p + size
        self.read_header(p, size)
        if not self.in_payload:
            if kind == FORMAT_DESCRIPTION:
                return self.format_description(p[:size])
            end -= self.verify(p, size)
        self.dispatch(kind, p + HEADER, end, <uint16_t> le(p + 17, 2))
        if self.ack_wanted and not self.in_payload:
            self.ack = self.file, self.end
        return 0

    cdef inline int read_header(self, const uint8_t* p, size_t size) except -1:
        """Read time u32, type u8, server id u32, size u32, next position u32, flags u16."""
        cdef int kind = p[4]
        self.time = <uint32_t> le(p, 4)
        self.server_id = <uint32_t> le(p + 5, 4)
        if not self.in_payload:  # an event in a compressed transaction has the position of the payload
            self.next_position = <uint32_t> le(p + 13, 4)
            self.locate(kind, size, self.next_position, <uint16_t> le(p + 17, 2))
            if self.rows.in_parts and kind != PARTIAL_ROW_DATA and kind != HEARTBEAT and kind != HEARTBEAT_V2:
                raise CorruptEvent(f"the last parts of a rows event are missing before {self.where()}")
        return 0

    cdef int verify(self, const uint8_t* p, size_t size) except -1:
        """Verify the checksum; return its size."""
        if not self.format_known:  # a dump begins with a ROTATE, which may or may not have a checksum
            return 4 if size >= HEADER + 4 and crc32_of(p, size - 4) == le(p + size - 4, 4) else 0
        if not self.checksum:
            return 0
        if size < HEADER + 4 or crc32_of(p, size - 4) != le(p + size - 4, 4):
            raise self.wrong_checksum(p[4])
        return 4

    cdef object wrong_checksum(self, int kind):
        return CorruptEvent(f"wrong checksum of {name_of(kind)} event at {self.where()}; check disk and network")

    cdef int dispatch(self, int kind, const uint8_t* body, const uint8_t* end, uint16_t flags) except -1:
        if kind == TABLE_MAP:
            return self.rows.maps.add(self, body, end, self.flavor)
        if rows_action(kind) >= 0:
            return self.rows.decode(self, kind, body, end)
        if kind == XID:
            return write_xid(self, body, end)
        if kind == GTID_MARIADB:
            return write_gtid_mariadb(self, body, end)
        if kind == GTID or kind == ANONYMOUS_GTID:
            return write_gtid(self, kind, body, end)
        if kind == QUERY and is_begin(body, end):
            return write_begin(self, body)
        try:
            return self.rare_event(kind, body[:end - body], flags)
        except (LookupError, ValueError) as error:
            raise self.corrupt(kind, error) from error

    cdef int format_description(self, bytes event) except -1:
        try:
            description, self.flavor = control.format_description(self.position(), event)
        except (LookupError, ValueError) as error:
            raise self.corrupt(FORMAT_DESCRIPTION, error) from error
        self.format_known, self.checksum = True, description.checksum
        self.version = description.server_version
        self.rows.maps.forget()
        return self.emit(description)

    cdef int rare_event(self, int kind, bytes body, uint16_t flags) except -1:
        if kind in CONTROL:
            return self.emit(CONTROL[kind](self.position(), body))
        if kind == HEARTBEAT or kind == HEARTBEAT_V2:
            return self.heartbeat(kind, body)
        if kind == QUERY or kind == QUERY_COMPRESSED or kind == EXECUTE_LOAD_QUERY:
            return self.query(kind, body)
        if kind == ROTATE:
            return self.rotate(body, flags & ARTIFICIAL)
        if kind == STOP:
            return self.emit(Stop(*self.position()))
        if kind == PARTIAL_ROW_DATA:
            return self.rows.decode_part(self, body, len(body))
        if kind == INCIDENT:
            raise control.incident(self.position(), body)
        if kind == START_ENCRYPTION and self.from_file:
            raise UnknownEvent(f"{self.file or 'the input'} is encrypted from {self.where()} on; read it through the server")
        if kind not in SKIPPED and not flags & IGNORABLE:
            raise control.unknown(kind, self.where(), self.version, body)
        return 0

    cdef int heartbeat(self, int kind, bytes body) except -1:
        if kind == HEARTBEAT_V2:
            event = control.heartbeat_v2(self.position(), body)
        else:
            event = control.heartbeat(self.position(), body, self.flavor == "mariadb" and self.next_position == 0)
        if event.file == self.file:
            self.offset = event.end
        return self.emit(event)

    cdef int rotate(self, bytes body, bint artificial) except -1:
        event = control.rotate(self.position(), body, artificial=artificial)
        self.emit(event)
        self.rows.maps.forget()
        if not self.from_file:
            self.enter(event.next_file, event.position)
        return 0

    cdef int query(self, int kind, bytes body) except -1:
        cdef int fixed = 26 if kind == EXECUTE_LOAD_QUERY else 13  # LOAD DATA adds its file's number and positions
        cdef const uint8_t* compressed
        cdef Py_ssize_t start, size
        text = None
        if kind == QUERY_COMPRESSED:
            start = control.text_start(body, fixed)
            size = len(body) - start
            if size < 0:
                raise IndexError("it is truncated")
            compressed = <const uint8_t*> PyBytes_AS_STRING(body) + start
            self.limit_statement(kind, inflated_size(compressed, size))
            text = inflated_statement(compressed, size)
        event = control.query(self.position(), body, text, self.collations, fixed)
        if event.query != b"COMMIT":
            self.rows.maps.forget_descriptions()
            self.paused = self.by_statement
        return self.emit(event)

    # --- compressed transactions --------------------------------------------------------------------------------------

    cdef int begin_payload(self, const uint8_t* header, size_t size) except -1:
        self.locate(TRANSACTION_PAYLOAD, size, <uint32_t> le(header + 13, 4), <uint16_t> le(header + 17, 2))
        self.need(size, HEADER + 1 + 4 * self.checksum, TRANSACTION_PAYLOAD)
        self.transaction = TransactionPayload(header[:HEADER], size - HEADER, checksum=self.checksum)
        return 0

    cdef int payload(self, const uint8_t* p, size_t size) except -1:
        """Decode the events that the next bytes complete."""
        try:
            data = self.transaction.feed(p[:size])
            if self.payload_left == 0:
                data += self.transaction.finish()
        except (LookupError, ValueError) as error:
            raise self.corrupt(TRANSACTION_PAYLOAD, error) from error
        self.payload_events(data)
        if self.payload_left == 0:
            if self.inner.size:
                raise self.corrupt(TRANSACTION_PAYLOAD, "it ends inside an event")
            self.transaction = None
            if self.ack_wanted:
                self.ack = self.file, self.end
        return 0

    cdef int payload_events(self, bytes data) except -1:
        self.in_payload = True
        try:
            self.events(<const uint8_t*> PyBytes_AS_STRING(data), len(data), &self.inner)
        finally:
            self.in_payload = False
        return 0

    # --- events above the limit ---------------------------------------------------------------------------------------

    cdef bint may_skip(self, const uint8_t* header, size_t size) except -1:
        """Return whether an event above the limit may be skipped. Raises OversizedStatement for a statement.

        An event that may not be skipped is decoded at any size.
        """
        cdef int kind = header[4]
        if kind == QUERY or kind == QUERY_COMPRESSED or kind == EXECUTE_LOAD_QUERY:
            self.read_header(header, size)
            self.limit_statement(kind, size)
        self.crc = crc32_of(header, HEADER)
        return rows_action(kind) >= 0 or kind in SKIPPED_ABOVE_LIMIT

    cdef int limit_statement(self, int kind, size_t size) except -1:
        if size > self.limit:
            raise OversizedStatement(
                f"{name_of(kind)} event at {self.where()} is a statement of {size} bytes, above row_limit "
                f"({self.limit}); raise row_limit to continue"
            )
        return 0

    cdef int read_skipped(self, const uint8_t* p, size_t size) except -1:
        self.crc = crc32_continued(self.crc, p, size)
        return 0

    cdef int end_skipped(self, const uint8_t* p, size_t kept, size_t size) except -1:
        """Verify a skipped event. Write OversizedRows for rows, add a part of a rows event, drop any other event."""
        cdef int kind = p[4]
        cdef size_t checksum = 4 if self.checksum and not self.in_payload else 0
        self.read_header(p, size)
        if checksum and self.crc != CRC32_RESIDUE:
            raise self.wrong_checksum(kind)
        self.need(size, HEADER + checksum, kind)
        kept = min(kept, size - checksum)
        if rows_action(kind) >= 0:
            self.rows.write_skipped(self, kind, p + HEADER, p + kept, size)
        elif kind == PARTIAL_ROW_DATA:
            try:
                self.rows.decode_part(self, p[HEADER:kept], size - checksum - HEADER)
            except (LookupError, ValueError) as error:
                raise self.corrupt(kind, error) from error
        if self.ack_wanted and not self.in_payload:
            self.ack = self.file, self.end
        return 0
