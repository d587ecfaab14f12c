"""Publishes the ordinary transactions of an entry of the pipe: msgpack goes into Kafka's batches.

A transaction takes the fast path if the entry has all of it, and it consists of `Begin`, `RowsEvent`s whose tables have
a `RowsWriter` for each route, and `Commit` (databus_core.events). All else is left to the caller. A transaction is read
before the first record is written, because some formats need to know its end, and it is published as a whole or not at
all: if a batch has no room, its records are removed again.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.ref cimport PyObject
from databus_wire.executed_gtids cimport ExecutedGtids
from databus_wire.msgpack_events cimport (
    EventHead, Text, is_text, put_big_endian, read_bool, read_fields, read_raw, read_text, read_uint,
)
from databus_wire.msgpack_rows cimport Cursor, read_array
from databus_wire.rows_writer cimport DELETE, INSERT, UPDATE, OpenBatches, Rows, RowsWriter, Transaction
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy
from libcpp.vector cimport vector

cdef enum Tag:  # of the events' classes, and the number of elements of their arrays, with the tag
    BEGIN = 2
    BEGIN_ELEMENTS = 9
    ROWS = 3
    ROWS_ELEMENTS = 10
    COMMIT = 5
    COMMIT_ELEMENTS = 6

cdef struct RoutedRows:
    Rows rows
    PyObject* writers  # a tuple; the caller's dict keeps it alive


@cython.final
cdef class EntryWalk:
    cdef bytes payload
    cdef Cursor cursor  # at the next event
    cdef Py_ssize_t left  # events that follow
    # what `publish` has published
    cdef ExecutedGtids executed
    cdef Text end_file
    cdef readonly int64_t transaction, time_us
    cdef readonly uint64_t end
    # the transaction that is being published
    cdef Transaction current
    cdef Text commit_gtids, commit_file
    cdef uint64_t commit_end
    cdef vector[RoutedRows] events
    cdef OpenBatches open

    def __cinit__(self, bytes payload not None):
        self.payload = payload
        self.cursor.at = <const uint8_t*> PyBytes_AS_STRING(payload)
        self.cursor.end = self.cursor.at + PyBytes_GET_SIZE(payload)
        self.left = read_fields(&self.cursor)
        self.executed, self.open = ExecutedGtids(), OpenBatches()

    @property
    def done(self):
        """See entry_walk.pyi."""
        return self.left == 0

    @property
    def file(self):
        """See entry_walk.pyi."""
        return PyBytes_FromStringAndSize(self.end_file.data, self.end_file.size).decode()

    @property
    def full(self):
        """See entry_walk.pyi."""
        return self.open.full

    def take_executed(self):
        """See entry_walk.pyi."""
        return self.executed.take()

    def take_group(self):
        """See entry_walk.pyi."""
        cdef const uint8_t* start = self.cursor.at
        cdef Cursor next
        cdef Py_ssize_t count = 0
        cdef bytes group
        cdef char* o
        while self.left:
            next = self.cursor
            if count and read_fields(&next) and read_uint(&next) == Tag.BEGIN:
                break
            read_raw(&self.cursor)
            self.left -= 1
            count += 1
        group = PyBytes_FromStringAndSize(NULL, 5 + self.cursor.at - start)
        o = PyBytes_AS_STRING(group)
        o[0] = <char> EventHead.ARRAY32_FIELD
        memcpy(put_big_endian(o + 1, count, 4), start, self.cursor.at - start)
        return group

    def publish(self, dict writers not None, find not None, open_batch not None, int64_t after, int64_t now_ns):
        """See entry_walk.pyi."""
        cdef Py_ssize_t count = 0, events
        cdef Cursor next
        self.transaction, self.current.now_ns = after, now_ns
        self.open.find = open_batch
        try:
            while self.left:
                next = self.cursor
                events = self.read(&next, writers, find)
                if not events or not self.write():
                    break
                self.cursor = next
                self.left -= events
                self.transaction, self.time_us = self.current.ordinal, self.current.time_us
                self.end_file, self.end = self.commit_file, self.commit_end
                count += 1
        finally:
            self.open.release()
        return count

    cdef int add_executed(self) except -1:
        """Take over the GTIDs of the transaction that was written."""
        if is_text(self.commit_gtids, self.current.gtid.data, self.current.gtid.size):
            return self.executed.add(self.commit_gtids)
        return self.executed.add_set(self.commit_gtids)

    # --- reading ------------------------------------------------------------------------------------------------------

    cdef Py_ssize_t read(self, Cursor* cursor, dict writers, object find) except -1:
        """Read a transaction; return the number of its events, 0 if it is not an ordinary one."""
        cdef Py_ssize_t index, elements
        cdef uint64_t tag
        self.events.clear()
        self.current.next_row = 0
        self.open.begin(next_number(), self.transaction + 1)
        for index in range(self.left):
            elements = read_fields(cursor)
            tag = read_uint(cursor) if elements else 0
            if index == 0:
                if tag != Tag.BEGIN or elements != Tag.BEGIN_ELEMENTS or not self.read_begin(cursor):
                    return 0
            elif tag == Tag.ROWS:
                if elements != Tag.ROWS_ELEMENTS or not self.read_rows(cursor, writers, find):
                    return 0
            elif tag == Tag.COMMIT and elements == Tag.COMMIT_ELEMENTS:
                self.read_commit(cursor)
                return index + 1
            else:
                return 0
        return 0

    cdef bint read_begin(self, Cursor* cursor) except -1:
        """Read a Begin; return False unless it is that of the next transaction."""
        self.current.ordinal = read_uint(cursor)
        self.current.gtid, self.current.file = read_text(cursor), read_text(cursor)
        self.current.server_id, self.current.thread_id = read_uint(cursor), read_uint(cursor)
        self.current.time_us = read_uint(cursor)
        read_uint(cursor)  # start
        read_uint(cursor)  # end
        return self.current.ordinal == self.transaction + 1

    cdef bint read_rows(self, Cursor* cursor, dict writers, object find) except -1:
        """Read a RowsEvent; return False if not all routes of its table have a writer, or values are absent."""
        cdef RoutedRows event
        cdef Text table = read_text(cursor), action = read_text(cursor)
        cdef Cursor images
        cdef tuple found = writers_of(table, writers, find)
        if found is None or not action.size:
            return False
        event.writers = <PyObject*> found
        event.rows.action = INSERT if action.data[0] == b"i" else UPDATE if action.data[0] == b"u" else DELETE
        event.rows.first, event.rows.start, event.rows.end = read_uint(cursor), read_uint(cursor), read_uint(cursor)
        event.rows.packed = read_raw(cursor)
        images = Cursor(<const uint8_t*> event.rows.packed.data, cursor.at)
        event.rows.count = read_array(&images)
        if event.rows.action == UPDATE:
            event.rows.count //= 2
        self.current.next_row = event.rows.first + event.rows.count
        read_text(cursor)  # query
        read_uint(cursor)  # table_id
        for writer in found:
            (<RowsWriter> writer).counter.begin(self.open.attempt)
            (<RowsWriter> writer).counter.all += event.rows.count
        self.events.push_back(event)
        return not read_bool(cursor)

    cdef int read_commit(self, Cursor* cursor) except -1:
        self.commit_gtids, self.commit_file = read_text(cursor), read_text(cursor)
        self.commit_end = read_uint(cursor)
        self.current.has_xid = cursor.at[0] != EventHead.NIL_FIELD
        self.current.xid = 0
        if self.current.has_xid:
            self.current.xid = read_uint(cursor)
        else:
            read_raw(cursor)
        read_uint(cursor)  # start
        return 0

    # --- writing ------------------------------------------------------------------------------------------------------

    cdef bint write(self) except -1:
        """Write the records of the transaction; write none, and return False, if a writer leaves it to the caller."""
        cdef size_t i
        cdef bint is_written = False
        try:
            for i in range(self.events.size()):
                if not self.write_rows(&self.events[i]):
                    return False
            self.add_executed()
            is_written = True
        finally:
            if not is_written:
                self.open.undo()
        return True

    cdef bint write_rows(self, RoutedRows* event) except -1:
        cdef RowsWriter writer
        for each in <tuple> event.writers:
            writer = <RowsWriter> each
            writer.open = self.open
            if not writer.write(&self.current, &event.rows):
                return False
            writer.counter.written += event.rows.count
        return True


cdef uint64_t last_number = 0


cdef uint64_t next_number() noexcept:
    """Return a number that this process has not used before."""
    global last_number
    last_number += 1
    return last_number


cdef tuple writers_of(Text table, dict writers, object find):
    """Return the writers of a table, by its fingerprint; None if not all of its routes have one."""
    cdef bytes fingerprint = PyBytes_FromStringAndSize(table.data, table.size)
    if fingerprint not in writers:
        find(fingerprint)
    return writers.get(fingerprint)
