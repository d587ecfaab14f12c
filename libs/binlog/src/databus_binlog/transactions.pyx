"""Writes the events that begin and end transactions."""

from databus_binlog.byte_order cimport le
from databus_binlog.msgpack cimport put_bin, put_bool, put_nil, put_str, put_uint
from databus_binlog.number_text cimport put_digits
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from databus_binlog.event_types import EventType as E

cdef int GTID = E.GTID, GTID_MARIADB = E.GTID_MARIADB, XID = E.XID, QUERY = E.QUERY

cdef enum Tag:  # of the classes in events.py
    GTID_TAG = 3
    QUERY_TAG = 4
    XID_TAG = 5

cdef enum GtidFlag:  # MariaDB's flags
    STANDALONE = 1
    GROUP_COMMIT = 2
    DDL = 32
    XA_PREPARED = 64
    XA_COMPLETED = 128

cdef enum ExtraGtidFlag:  # MariaDB's second byte of flags
    MULTI_ENGINE = 1
    START_ALTER = 2
    COMMIT_ALTER = 4
    ROLLBACK_ALTER = 8
    THREAD_ID = 16


cdef int write_gtid_mariadb(EventWriter to, const uint8_t* body, const uint8_t* end) except -1:
    """Read sequence u64, domain u32, flags u8, [commit id u64], [XID: format u32, two lengths u8, data], [flags u8,
    [number of engines u8], [sequence of the ALTER's start u64], [thread u32]]."""
    cdef char[64] gtid
    cdef char* o
    cdef uint8_t flags
    cdef uint8_t more = 0
    cdef uint32_t thread = 0
    cdef Py_ssize_t extra = 13  # offset of the second byte of flags, after the optional fields
    to.need(end - body, extra, GTID_MARIADB)
    flags = body[12]
    if flags & GROUP_COMMIT:
        extra += 8
    if flags & (XA_PREPARED | XA_COMPLETED):
        to.need(end - body, extra + 6, GTID_MARIADB)
        extra += 6 + body[extra + 4] + body[extra + 5]
    if extra < end - body:
        more = body[extra]
    if more & THREAD_ID:
        extra += 1 + (1 if more & MULTI_ENGINE else 0) + (8 if more & (COMMIT_ALTER | ROLLBACK_ALTER) else 0)
        to.need(end - body, extra + 4, GTID_MARIADB)
        thread = <uint32_t> le(body + extra, 4)
    o = put_digits(gtid, le(body + 8, 4))
    o[0] = b"-"
    o = put_digits(o + 1, to.server_id)
    o[0] = b"-"
    o = put_digits(o + 1, le(body, 8))
    return write_gtid_text(
        to, gtid, o - gtid, flags & STANDALONE, flags & DDL, more, 0, flags & XA_PREPARED, thread
    )


cdef int write_gtid(EventWriter to, int kind, const uint8_t* body, const uint8_t* end) except -1:
    """Read flags u8, UUID, number u64, [u8 with value 2, last committed i64, sequence i64, commit times u56]."""
    cdef uint64_t committed = 0
    cdef char[64] gtid
    cdef char* o = gtid
    to.need(end - body, 25, kind)
    if kind == GTID:
        o = put_uuid(gtid, body + 1)
        o[0] = b":"
        o = put_digits(o + 1, le(body + 17, 8))
    if end - body >= 49 and body[25] == 2:
        committed = le(body + 42, 7)
        if committed >> 55:  # the original server's commit time follows this server's
            to.need(end - body, 56, kind)
            committed = le(body + 49, 7)
    return write_gtid_text(to, gtid, o - gtid, False, False, 0, committed, False, 0)


cdef int write_gtid_text(
    EventWriter to, const char* gtid, size_t size, bint standalone, bint ddl, int alter, uint64_t committed, bint xa,
    uint32_t thread,
) except -1:
    cdef char* o = put_str(to.begin(GTID_TAG, 7, size + 40), gtid, size)
    o = put_bool(put_bool(o, standalone), ddl)
    if alter & START_ALTER:
        o = put_str(o, b"start", 5)
    elif alter & COMMIT_ALTER:
        o = put_str(o, b"commit", 6)
    elif alter & ROLLBACK_ALTER:
        o = put_str(o, b"rollback", 8)
    else:
        o = put_str(o, b"", 0)
    return to.complete(put_uint(put_bool(put_uint(o, committed), xa), thread))


cdef char* put_uuid(char* o, const uint8_t* p) noexcept nogil:
    cdef const char* hexadecimal = b"0123456789abcdef"
    cdef int i
    for i in range(16):
        if i == 4 or i == 6 or i == 8 or i == 10:
            o[0] = b"-"
            o += 1
        o[0] = hexadecimal[p[i] >> 4]
        o[1] = hexadecimal[p[i] & 15]
        o += 2
    return o


cdef bint is_begin(const uint8_t* body, const uint8_t* end) noexcept nogil:
    """Return whether a QUERY event is the BEGIN of a transaction."""
    cdef Py_ssize_t text
    if end - body < 13:
        return False
    text = 13 + le(body + 11, 2) + body[8] + 1
    return end - body == text + 5 and memcmp(body + text, b"BEGIN", 5) == 0


cdef int write_begin(EventWriter to, const uint8_t* body) except -1:
    """Read thread u32, seconds u32, schema length u8, error u16, status length u16, status, schema, NUL, BEGIN."""
    cdef size_t size = body[8], i
    cdef const char* schema = <const char*> body + 13 + le(body + 11, 2)
    cdef char* o
    for i in range(size):
        if schema[i] & 0x80:
            try:
                schema[:size].decode()
            except UnicodeDecodeError as error:
                raise to.corrupt(QUERY, error) from error
            break
    o = to.begin(QUERY_TAG, 5, size + 32)
    o = put_str(o, schema, size)
    o = put_bin(o, 5)
    memcpy(o, b"BEGIN", 5)
    o = put_uint(put_uint(o + 5, le(body, 4)), le(body + 9, 2))
    return to.complete(put_nil(o))


cdef int write_xid(EventWriter to, const uint8_t* body, const uint8_t* end) except -1:
    to.need(end - body, 8, XID)
    return to.complete(put_uint(to.begin(XID_TAG, 1, 16), le(body, 8)))
