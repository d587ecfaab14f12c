"""Decodes rows events."""

from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from databus_binlog.buffer cimport room, trim
from databus_binlog.byte_order cimport le
from databus_binlog.faults cimport check
from databus_binlog.framing cimport HEADER
from databus_binlog.inflate cimport inflate_event, inflated_size
from databus_binlog.msgpack cimport put_array32, put_bool, put_str, put_uint, put_uint32
from databus_binlog.row_images cimport set_present, write_images
from libc.stdlib cimport free
from libc.string cimport memset

from databus_binlog.control import Parts
from databus_binlog.errors import CorruptEvent, PartialRowImage
from databus_binlog.event_types import EventType as E

cdef int WRITE_ROWS_V1 = E.WRITE_ROWS_V1, DELETE_ROWS_V1 = E.DELETE_ROWS_V1
cdef int WRITE_ROWS = E.WRITE_ROWS, DELETE_ROWS = E.DELETE_ROWS
cdef int FIRST_COMPRESSED = E.WRITE_ROWS_COMPRESSED_V1, LAST_COMPRESSED = E.DELETE_ROWS_COMPRESSED
cdef int FIRST_COMPRESSED_V2 = E.WRITE_ROWS_COMPRESSED
cdef int PARTIAL_UPDATE_ROWS = E.PARTIAL_UPDATE_ROWS

cdef enum Tag:  # of the classes in events.py
    ROWS_TAG = 8
    OVERSIZED_ROWS_TAG = 11

cdef enum:
    STATEMENT_END = 1  # flag
    UPDATE = 1  # action

cdef tuple ACTIONS = (b"insert", b"update", b"delete")

FAULTS = {
    Fault.TRUNCATED: "the row is truncated",
    Fault.BAD_JSON: "malformed binary JSON",
    Fault.BAD_TEXT: "bytes that do not exist in its character set",
    Fault.BAD_COMPRESSION: "its compressed value can't be inflated",
    Fault.BAD_DIFF: "its JSON diff does not fit the value of the before image",
    Fault.NO_COLUMNS: "rows without any column; set binlog_row_image=FULL",
    Fault.NO_BEFORE_IMAGE: "a JSON diff without the value of the before image; set binlog_row_image=FULL",
}
FAULT_CLASSES = {Fault.NO_BEFORE_IMAGE: PartialRowImage, Fault.NO_COLUMNS: PartialRowImage}


cdef int rows_action(int kind) noexcept nogil:
    """Return the index in ACTIONS for a rows event of any kind that is decoded; -1 for any other event."""
    if WRITE_ROWS_V1 <= kind <= DELETE_ROWS_V1:
        return kind - WRITE_ROWS_V1
    if WRITE_ROWS <= kind <= DELETE_ROWS:
        return kind - WRITE_ROWS
    if FIRST_COMPRESSED <= kind <= LAST_COMPRESSED:
        return (kind - FIRST_COMPRESSED) % 3
    return UPDATE if kind == PARTIAL_UPDATE_ROWS else -1


cdef class RowsDecoder:
    def __cinit__(self, Tables maps, limit):
        self.maps = maps
        self.parts = Parts(limit)
        self.tables = {}

    def __dealloc__(self):
        free(self.inflated.data)
        free(self.json.data)
        free(self.scratch.data)

    cdef int begin_output(self) except -1:
        self.tables = {}
        self.outputs += 1
        return 0

    cdef int trim(self) except -1:
        """Release the memory that a large event took."""
        trim(&self.inflated)
        trim(&self.json)
        trim(&self.scratch)
        return 0

    cdef int decode(self, EventWriter to, int kind, const uint8_t* p, const uint8_t* end) except -1:
        """Read table number u48, flags u16, [version 2: size u16, extra data], column count, bitmaps, images."""
        cdef bint statement_end
        cdef uint32_t columns
        cdef uint64_t number
        cdef TablePlan plan = self.plan_of(to, kind, p, end, &statement_end)
        if plan is None:
            return 0
        number = le(p, 6)
        p += 8
        if kind < FIRST_COMPRESSED and kind > DELETE_ROWS_V1 or kind >= FIRST_COMPRESSED_V2:  # version 2
            to.need(end - p, 2, kind)
            to.need(end - p, max(<Py_ssize_t> 2, <Py_ssize_t> le(p, 2)), kind)
            p += le(p, 2)
        to.need(end - p, 1, kind)
        to.need(end - p, 1 if p[0] < 0xFB else 3, kind)
        columns = p[0] if p[0] < 0xFB else <uint32_t> le(p + 1, 2)
        p += 1 if p[0] < 0xFB else 3
        if columns != plan.count + plan.hidden:
            raise CorruptEvent(
                f"rows of {plan.name} at {to.where()} have {columns} columns, but their table map has"
                f" {plan.count + plan.hidden}"
            )
        to.need(end - p, (columns + 7) // 8 * (2 if rows_action(kind) == UPDATE else 1), kind)
        return self.write(to, plan, number, kind, p, end, statement_end)

    cdef int decode_part(self, EventWriter to, bytes body, size_t size) except -1:
        """Add a part of a rows event (MariaDB ≥ 12.3); decode the rows event when it is complete.

        `body` is the body of the PARTIAL_ROW_DATA event, or only its beginning; `size` is the complete body's size.
        Raises ValueError or LookupError if the body is malformed.
        """
        cdef bytearray event
        cdef const uint8_t* p
        self.parts.add(body, size)
        self.in_parts = not self.parts.complete
        if self.in_parts:
            return 0
        event, size = self.parts.take()
        p = <const uint8_t*> PyByteArray_AS_STRING(event)
        if len(event) < HEADER or le(p + 9, 4) != size or rows_action(p[4]) < 0:
            raise ValueError("its parts are not a rows event")
        if <size_t> len(event) < size:
            return self.write_skipped(to, p[4], p + HEADER, p + len(event), size)
        return self.decode(to, p[4], p + HEADER, p + len(event))

    cdef int write_skipped(self, EventWriter to, int kind, const uint8_t* p, const uint8_t* end, size_t size) except -1:
        """Write OversizedRows for a rows event of `size` bytes, of which only the beginning was kept."""
        cdef bint statement_end
        cdef TablePlan plan = self.plan_of(to, kind, p, end, &statement_end)
        return 0 if plan is None else self.write_oversized(to, plan, kind, size, statement_end)

    cdef TablePlan plan_of(
        self, EventWriter to, int kind, const uint8_t* p, const uint8_t* end, bint* statement_end
    ):
        """Read table number u48 and flags u16. Return the table's plan; None if no rows of a wanted table follow."""
        cdef uint64_t number
        cdef TablePlan plan
        to.need(end - p, 8, kind)
        number, statement_end[0] = le(p, 6), le(p + 6, 2) & STATEMENT_END
        plan = self.maps.find(number)
        if statement_end[0]:
            self.maps.forget()
        if plan is None:
            if statement_end[0] and (number == 0xFFFFFF or number == 0xFFFFFFFFFFFF):
                return None  # the event has no rows; it only ends the statement
            raise CorruptEvent(f"rows at {to.where()} belong to no table map; read from an earlier position")
        if plan.table is None:
            return None
        if plan.error_class is not None:
            raise plan.error_class(f"{plan.error_message} ({to.where()})")
        return plan

    cdef int write(
        self, EventWriter to, TablePlan plan, uint64_t number, int kind, const uint8_t* p, const uint8_t* end,
        bint statement_end,
    ) except -1:
        """Write Rows: the common fields, then those of the class `Rows`, in the same order.

        Write OversizedRows instead if the rows inflate to more than the limit.
        """
        cdef RowImages rows
        cdef Fault fault
        cdef size_t count_at, images_at
        cdef char* o
        p = self.lay_out(&rows, plan, kind, p, to.limit)
        if kind >= FIRST_COMPRESSED:
            if inflated_size(p, end - p) > to.limit:
                return self.write_oversized(to, plan, kind, inflated_size(p, end - p), statement_end)
            try:
                inflate_event(&self.inflated, p, end - p)
            except ValueError as error:
                raise to.corrupt(kind, error) from error
            p = <const uint8_t*> self.inflated.data
            end = p + self.inflated.size
        o = to.begin(ROWS_TAG, 7, 80)
        o = put_str(o, PyBytes_AS_STRING(plan.fingerprint), PyBytes_GET_SIZE(plan.fingerprint))
        o = put_uint(o, number)
        o = put_str(o, PyBytes_AS_STRING(ACTIONS[rows_action(kind)]), 6)
        count_at = o - to.out.data  # the number of images is only known after they are written
        o = put_bool(put_bool(o + 5, rows.images[0].complete and rows.images[rows.sides - 1].complete), statement_end)
        images_at = o - to.out.data
        to.out.size = images_at + 5
        fault = write_images(&rows, p, end, &to.out)
        if fault == Fault.TOO_LARGE:
            to.out.size = to.complete_size
            return self.write_oversized(to, plan, kind, rows.inflated, statement_end)
        if fault != Fault.NONE:
            check(fault)
            where = f"{plan.name} at {to.where()}"
            if fault != Fault.NO_COLUMNS:
                where = f"column {plan.table.columns[rows.failed].name or rows.failed} of {where}"
            raise FAULT_CLASSES.get(fault, CorruptEvent)(f"{where}: {FAULTS[fault]}")
        put_uint32(to.out.data + count_at, rows.written)
        put_array32(to.out.data + images_at, rows.written)
        to.images += rows.written
        self.add_table(plan)
        return to.complete(to.out.data + to.out.size)

    cdef int write_oversized(
        self, EventWriter to, TablePlan plan, int kind, size_t size, bint statement_end
    ) except -1:
        cdef char* o = to.begin(OVERSIZED_ROWS_TAG, 4, 64)
        o = put_str(o, PyBytes_AS_STRING(plan.fingerprint), PyBytes_GET_SIZE(plan.fingerprint))
        o = put_str(o, PyBytes_AS_STRING(ACTIONS[rows_action(kind)]), 6)
        self.add_table(plan)
        return to.complete(put_bool(put_uint(o, size), statement_end))

    cdef int add_table(self, TablePlan plan) except -1:
        """Add the TableMap to those that are returned with the output."""
        if plan.used != self.outputs:
            plan.used = self.outputs
            self.tables[plan.table.fingerprint] = plan.table
        return 0

    cdef const uint8_t* lay_out(
        self, RowImages* rows, TablePlan plan, int kind, const uint8_t* p, size_t limit
    ) except NULL:
        """Set how to read the images; return the position after the bitmaps of the columns that they contain."""
        cdef uint32_t i, columns = plan.count + plan.hidden, bitmap = (columns + 7) // 8
        memset(rows, 0, sizeof(RowImages))
        rows.columns, rows.count, rows.hidden, rows.limit = plan.columns, plan.count, plan.hidden, limit
        rows.json_columns, rows.json, rows.scratch = plan.json_columns, &self.json, &self.scratch
        rows.sides = 2 if rows_action(kind) == UPDATE else 1
        for i in range(rows.sides):
            set_present(&rows.images[i], p + i * bitmap, plan.count, plan.hidden)
        if kind == PARTIAL_UPDATE_ROWS:
            rows.images[1].partial = True
            self.json.size = 0
            if room(&self.json, 2 * sizeof(size_t) * plan.count) == NULL:
                raise MemoryError
            self.json.size = 2 * sizeof(size_t) * plan.count
        return p + rows.sides * bitmap
