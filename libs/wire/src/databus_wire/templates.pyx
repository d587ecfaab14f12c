"""Templates of text: what all messages of a table have in common is encoded once, by the format, in Python."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from databus_wire.json_fast_path cimport put_integer, put_unsigned
from databus_wire.json_values cimport append_text
from databus_wire.msgpack_events cimport Text
from databus_wire.output cimport Output, append, end_at, room
from libc.stdint cimport int64_t, uint8_t


@cython.final
cdef class Template:
    def __cinit__(self, parts):
        self.owned = tuple(parts)
        for part in self.owned:
            if isinstance(part, bytes):
                self.parts.push_back(Part(Slot.TEXT, PyBytes_AS_STRING(part), PyBytes_GET_SIZE(part)))
            elif Slot.TEXT < part <= Slot.THREAD_MEMBER:
                self.parts.push_back(Part(<Slot> <int> part, NULL, 0))
            else:
                raise ValueError(f"there is no slot {part}")

    cdef int append_to(self, Output* out, const Transaction* transaction, const Rows* rows) except -1:
        """Append the text, with the slots filled."""
        cdef size_t i
        for i in range(self.parts.size()):
            if self.parts[i].slot == Slot.TEXT:
                append(out, self.parts[i].text, self.parts[i].size)
            else:
                append_slot(out, self.parts[i].slot, transaction, rows)
        return 0


cdef int append_slot(Output* out, Slot slot, const Transaction* transaction, const Rows* rows) except -1:
    if slot == Slot.TIME_S:
        return append_integer(out, transaction.time_us // 1_000_000)
    if slot == Slot.TIME_MS:
        return append_integer(out, transaction.time_us // 1000)
    if slot == Slot.TIME_US:
        return append_integer(out, transaction.time_us)
    if slot == Slot.TIME_NS:
        return append_integer(out, transaction.time_us * 1000)
    if slot == Slot.NOW_MS:
        return append_integer(out, transaction.now_ns // 1_000_000)
    if slot == Slot.NOW_US:
        return append_integer(out, transaction.now_ns // 1000)
    if slot == Slot.NOW_NS:
        return append_integer(out, transaction.now_ns)
    if slot == Slot.ORDINAL:
        return append_integer(out, transaction.ordinal)
    if slot == Slot.SERVER_ID:
        return append_integer(out, transaction.server_id)
    if slot == Slot.START:
        return append_integer(out, rows.start)
    if slot == Slot.FILE:
        return append_string(out, transaction.file)
    if slot == Slot.GTID or slot == Slot.GTID_OR_NULL and transaction.gtid.size:
        return append_string(out, transaction.gtid)
    if slot == Slot.THREAD and transaction.thread_id:
        return append_integer(out, transaction.thread_id)
    if slot == Slot.GTID_OR_NULL or slot == Slot.THREAD:
        return append(out, b"null", 4)
    if slot == Slot.POSITION:
        append_string(out, transaction.file)
        out.data[out.size - 1] = b":"  # in place of the quotation mark
        append_integer(out, rows.start)
        return append(out, b'"', 1)
    return append_member(out, slot, transaction)


cdef int append_member(Output* out, Slot slot, const Transaction* transaction) except -1:
    """Append a comma and a member of an object, if its value is known."""
    if slot == Slot.XID_MEMBER and transaction.has_xid:
        append(out, b',"xid":', 7)
        end_at(out, put_unsigned(transaction.xid, room(out, 20)))
    elif slot == Slot.GTID_MEMBER and transaction.gtid.size:
        append(out, b',"gtid":', 8)
        append_string(out, transaction.gtid)
    elif slot == Slot.THREAD_MEMBER and transaction.thread_id:
        append(out, b',"thread_id":', 13)
        append_integer(out, transaction.thread_id)
    return 0


cdef inline int append_integer(Output* out, int64_t number) except -1:
    return end_at(out, put_integer(number, room(out, 20)))


cdef inline int append_string(Output* out, Text text) except -1:
    return append_text(out, <const uint8_t*> text.data, text.size)
