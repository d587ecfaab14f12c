"""Ordinary transactions, from the bytes of databus-binlog's decoder into the bytes of the pipe's events.

A transaction takes the fast path if it consists of these events of the binlog, all of them in the data:

    MySQL    Gtid  Query BEGIN  ([RowsQuery]  Rows)*  Xid
    MariaDB  Gtid  ([RowsQuery]  Rows)*  Xid

with complete rows of tables that may be taken. It becomes `Begin RowsEvent… Commit`, in the bytes that
`databus_core.events.encode_events` writes, or nothing if it has no rows. `databus_changes.translate` takes all others,
and says what each field means: `tests/unit/changes/test_fast_path.py` compares both.

    take ─► take_one ─► read_opening                                  Gtid, BEGIN
                   └──► read_rest ─► take_rows ─► write_begin         Rows
                               └───► end ─► write_commit              Xid

A transaction that turns out not to be ordinary is forgotten: the cursor and the output return to its beginning.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free
from databus_wire.executed_gtids cimport ExecutedGtids
from databus_wire.msgpack_events cimport (
    EventHead, Text, is_text, put_bin, put_bool, put_str, put_uint, read_bool, read_fields, read_raw, read_text,
    read_uint, refuse_events, text_of,
)
from databus_wire.msgpack_rows cimport Cursor
from databus_wire.output cimport Output, end_at, room
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy

cdef enum BinlogTag:  # of the classes in databus_binlog/events.py
    GTID_TAG = 3
    QUERY_TAG = 4
    XID_TAG = 5
    ROWS_QUERY_TAG = 7
    ROWS_TAG = 8

cdef enum PipeTag:  # of the classes in databus_core/events.py
    BEGIN_TAG = 2
    ROWS_EVENT_TAG = 3
    COMMIT_TAG = 5

cdef enum:
    COMMON_FIELDS = 6  # of each event in the binlog: tag, time, server id, file, start, end
    NUMBERS = 96  # bytes of an event's numbers and headers, at most
    KEPT_BYTES = 1 << 20  # larger memory is freed, which only large transactions need


cdef struct BinlogEvent:
    uint64_t tag, time, server_id, start, end
    Text file
    Py_ssize_t fields  # number of fields that follow


cdef struct Transaction:
    Text gtid
    uint64_t time_us  # of its commit
    uint64_t thread_id
    uint64_t start, end  # of the event that opens it
    Text query  # of the next rows; a null pointer if the server does not log it
    uint64_t row  # ordinal of the next row
    uint64_t images
    Py_ssize_t events  # written so far


@cython.final
cdef class BinlogWalk:
    cdef bint mariadb, gtids
    cdef object table_of, executed
    cdef bytes data
    cdef Cursor cursor  # in `data`
    cdef bint cut  # the transaction at the cursor is ordinary as far as the data has it
    cdef Output out
    cdef dict tables  # fingerprint → what `table_of` has returned
    cdef bint pending  # as `executed.pending`
    cdef ExecutedGtids reported  # GTIDs that events have reported, and `executed` has not noted
    cdef ExecutedGtids skipped  # GTIDs of transactions without rows that no event has reported, nor has `executed` them
    cdef uint64_t ordinal  # of the last transaction with a Begin
    cdef Text last_file  # file of the last transaction's end
    cdef readonly Py_ssize_t events, transactions, rows
    cdef readonly str file
    cdef readonly uint64_t end, time_us
    cdef readonly bint has_rows

    def __init__(self, *, bint mariadb, bint gtids, table_of, executed):
        self.mariadb, self.gtids = mariadb, gtids
        self.table_of, self.executed = table_of, executed
        self.reported, self.skipped = ExecutedGtids(), ExecutedGtids()
        self.tables, self.data, self.file = {}, b"", ""

    def __dealloc__(self):
        PyMem_Free(self.out.data)

    @property
    def done(self):
        return self.cursor.at >= self.cursor.end

    def begin(self, bytes data not None, bytes kept not None):
        """See binlog_walk.pyi."""
        self.walk(data)
        read_fields(&self.cursor)
        if kept:
            self.walk(kept + data[self.offset():])

    cdef int walk(self, bytes data) except -1:
        self.data = data
        self.cut = False
        self.cursor.at = <const uint8_t*> PyBytes_AS_STRING(data)
        self.cursor.end = self.cursor.at + PyBytes_GET_SIZE(data)
        return 0

    def take(self, uint64_t ordinal, size_t size):
        """See binlog_walk.pyi."""
        cdef Py_ssize_t taken = 0
        self.ordinal, self.pending = ordinal, self.executed.pending
        self.events = self.transactions = self.rows = 0
        self.out.size = 0
        self.tables.clear()  # since the last call, Python may have learnt of anything that `table_of` depends on
        try:
            while self.out.size < size and self.take_one():
                taken += 1
        finally:
            self.note_reported()
            self.add_skipped()
        if not taken:
            return None
        self.file = self.last_file.data[:self.last_file.size].decode()
        return self.take_output()

    def keep(self, Py_ssize_t limit):
        """See binlog_walk.pyi."""
        cdef Py_ssize_t start = self.offset()
        if not self.cut or PyBytes_GET_SIZE(self.data) - start > limit:
            return b""
        self.cursor.at = self.cursor.end
        return self.data[start:]

    def pass_group(self):
        """See binlog_walk.pyi."""
        cdef Py_ssize_t start = self.offset()
        cdef const uint8_t* at
        cdef Py_ssize_t fields, passed = 0
        self.cut = False
        while self.cursor.at < self.cursor.end:
            at = self.cursor.at
            fields = read_fields(&self.cursor)
            if fields < COMMON_FIELDS:
                refuse_events(b"an event lacks fields")
            if read_uint(&self.cursor) == GTID_TAG and passed:
                self.cursor.at = at
                break
            self.pass_fields(fields - 1)
            passed += 1
        return self.data[start:self.offset()], passed

    # --- reading ------------------------------------------------------------------------------------------------------

    cdef bint take_one(self) except -1:
        """Take the next transaction; return False, and change nothing, if it is not ordinary or not complete."""
        cdef const uint8_t* at = self.cursor.at
        cdef size_t size = self.out.size
        cdef Transaction open
        self.cut = False
        if self.read_opening(&open) and self.read_rest(&open):
            return True
        self.cursor.at, self.out.size = at, size
        return False

    cdef bint read_opening(self, Transaction* open) except -1:
        cdef BinlogEvent event
        cdef bint standalone
        cdef Text alter
        if not self.next_event(&event) or event.tag != GTID_TAG or not 5 <= event.fields <= 7:
            return False
        open.gtid = read_text(&self.cursor)
        standalone = read_bool(&self.cursor)
        read_bool(&self.cursor)  # DDL: without `standalone`, it is a CREATE TABLE … SELECT, whose statement is a Query
        alter = read_text(&self.cursor)
        open.time_us = read_uint(&self.cursor) or event.time * 1_000_000
        if event.fields > 5 and read_bool(&self.cursor):  # XA PREPARE
            return False
        open.thread_id = read_uint(&self.cursor) if event.fields > 6 else 0
        if standalone or alter.size:
            return False
        if not self.mariadb and not self.read_begin(&event, open):
            return False
        open.start, open.end = event.start, event.end
        open.query = no_text()
        open.row = open.images = 0
        open.events = 0
        return True

    cdef bint read_begin(self, BinlogEvent* event, Transaction* open) except -1:
        """Read MySQL's BEGIN, which names the session's thread."""
        cdef Text query
        cdef uint64_t thread
        if not self.next_event(event) or event.tag != QUERY_TAG or event.fields < 5:
            return False
        read_text(&self.cursor)  # the schema
        query = read_text(&self.cursor)
        thread = read_uint(&self.cursor)
        self.pass_fields(event.fields - 3)
        open.thread_id = thread or open.thread_id
        return is_text(query, b"BEGIN", 5)

    cdef bint read_rest(self, Transaction* open) except -1:
        cdef BinlogEvent event
        while self.next_event(&event):
            if event.tag == ROWS_TAG and event.fields == 7:
                if not self.take_rows(&event, open):
                    return False
            elif event.tag == ROWS_QUERY_TAG and event.fields == 1:
                open.query = read_text(&self.cursor)
            elif event.tag == XID_TAG and event.fields == 1:
                self.end_transaction(&event, open)
                return True
            else:
                return False
        return False

    cdef bint take_rows(self, BinlogEvent* event, Transaction* open) except -1:
        cdef Text table = read_text(&self.cursor)
        cdef uint64_t table_id = read_uint(&self.cursor)
        cdef Text action = read_text(&self.cursor)
        cdef uint64_t count = read_uint(&self.cursor)
        cdef bint complete = read_bool(&self.cursor)
        cdef bytes name
        read_bool(&self.cursor)  # whether the statement ends
        cdef Text rows = read_raw(&self.cursor)
        name = self.table(table) if complete else None
        if name is None:
            return False
        if not open.events:
            self.write_begin(event, open)
        self.write_rows(event, open, name, action, rows, table_id)
        open.query = no_text()
        open.images += count
        open.row += count // 2 if is_text(action, b"update", 6) else count
        return True

    cdef int end_transaction(self, BinlogEvent* event, Transaction* open) except -1:
        cdef uint64_t xid = read_uint(&self.cursor)
        cdef bytes executed
        if open.events:
            if self.pending or not self.skipped.is_empty():
                executed = self.take_pending(open)
                self.write_commit(event, open, text_of(executed), xid)
            elif self.gtids:
                self.reported.add(open.gtid)
                self.write_commit(event, open, open.gtid, xid)
            else:
                self.write_commit(event, open, text_of(b""), xid)
            self.transactions += 1
        elif self.gtids:
            self.skipped.add(open.gtid)
        self.events += open.events
        self.rows += open.images
        self.has_rows = open.events > 0
        self.last_file, self.end, self.time_us = event.file, event.end, open.time_us
        return 0

    cdef bint next_event(self, BinlogEvent* event) except -1:
        """Read the fields that each event begins with; return False behind the last event."""
        if self.cursor.at >= self.cursor.end:
            self.cut = True
            return False
        event.fields = read_fields(&self.cursor) - COMMON_FIELDS
        if event.fields < 0:
            refuse_events(b"an event lacks fields")
        event.tag = read_uint(&self.cursor)
        event.time = read_uint(&self.cursor)
        event.server_id = read_uint(&self.cursor)
        event.file = read_text(&self.cursor)
        event.start = read_uint(&self.cursor)
        event.end = read_uint(&self.cursor)
        return True

    cdef int pass_fields(self, Py_ssize_t number) except -1:
        for _ in range(number):
            read_raw(&self.cursor)
        return 0

    cdef Py_ssize_t offset(self) except -1:
        return self.cursor.at - <const uint8_t*> PyBytes_AS_STRING(self.data)

    cdef bytes table(self, Text fingerprint):
        """Return the fingerprint of the pipe's table; None if its rows are not to be taken."""
        cdef bytes key = fingerprint.data[:fingerprint.size]
        cdef bytes found = self.tables.get(key)
        if found is None:
            name = self.table_of(key.decode())
            if name is not None:
                found = self.tables[key] = name.encode()
        return found

    # --- executed GTIDs -----------------------------------------------------------------------------------------------

    cdef bytes take_pending(self, Transaction* open):
        """Return the GTIDs of earlier transactions without rows, and that of this one."""
        cdef str executed
        if not self.pending:
            self.skipped.add(open.gtid)
            if self.skipped.has_one_run():
                executed = self.skipped.run_text()
                self.reported.join(self.skipped)
                return executed.encode()
        self.note_reported()
        self.add_skipped()
        self.pending = False
        return self.executed.take(open.gtid.data[:open.gtid.size].decode() if self.gtids else "").encode()

    cdef int note_reported(self) except -1:
        """Hand the GTIDs over that events have reported."""
        for gtids in self.reported.take():
            self.executed.note(gtids)
        return 0

    cdef int add_skipped(self) except -1:
        """Hand the GTIDs over that no event has reported."""
        for gtids in self.skipped.take():
            self.executed.add_set(gtids)
            self.pending = True
        return 0

    # --- writing ------------------------------------------------------------------------------------------------------

    cdef int write_begin(self, BinlogEvent* event, Transaction* open) except -1:
        cdef char* o = self.event(BEGIN_TAG, 8, open.gtid.size + event.file.size)
        self.ordinal += 1
        o = put_str(put_uint(o, self.ordinal), open.gtid)
        o = put_uint(put_str(o, event.file), event.server_id)
        o = put_uint(put_uint(o, open.thread_id), open.time_us)
        return self.complete(open, put_uint(put_uint(o, open.start), open.end))

    cdef int write_rows(
        self, BinlogEvent* event, Transaction* open, bytes table, Text action, Text rows, uint64_t table_id
    ) except -1:
        cdef char* o = self.event(
            ROWS_EVENT_TAG, 9, PyBytes_GET_SIZE(table) + action.size + rows.size + open.query.size
        )
        o = put_uint(put_str(put_str(o, text_of(table)), action), open.row)
        o = put_uint(put_uint(o, event.start), event.end)
        memcpy(o, rows.data, rows.size)
        o = put_uint(put_bin(o + rows.size, open.query), table_id)
        return self.complete(open, put_bool(o, False))  # it is not partial

    cdef int write_commit(self, BinlogEvent* event, Transaction* open, Text executed, uint64_t xid) except -1:
        cdef char* o = self.event(COMMIT_TAG, 5, executed.size + event.file.size)
        o = put_uint(put_str(put_str(o, executed), event.file), event.end)
        return self.complete(open, put_uint(put_uint(o, xid), event.start))

    cdef char* event(self, int tag, int fields, size_t texts) except NULL:
        """Begin an event of the pipe, whose texts have this size."""
        cdef char* o = room(&self.out, NUMBERS + texts)
        o[0] = <char> (EventHead.SMALL_ARRAY_FIELD + fields + 1)
        return put_uint(o + 1, tag)

    cdef int complete(self, Transaction* open, char* o) except -1:
        open.events += 1
        return end_at(&self.out, o)

    cdef bytes take_output(self):
        cdef bytes output = PyBytes_FromStringAndSize(self.out.data, self.out.size)
        if self.out.capacity > KEPT_BYTES:
            PyMem_Free(self.out.data)
            self.out.data, self.out.capacity = <char*> NULL, 0
        return output


cdef inline Text no_text() noexcept:
    return Text(NULL, 0)
