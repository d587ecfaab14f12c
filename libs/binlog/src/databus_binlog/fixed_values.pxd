"""Writes values of a fixed size as text."""

from databus_binlog.byte_order cimport be
from databus_binlog.columns cimport Column, Kind
from databus_binlog.msgpack cimport put_bin
from databus_binlog.number_text cimport (
    put_decimal, put_digits, put_float, put_padded, put_signed, put_unsigned,
)
from databus_binlog.time_text cimport (
    put_date3, put_datetime2, put_old_datetime, put_old_time, put_old_timestamp, put_time2, put_timestamp2,
)
from libc.stdint cimport uint8_t
from libc.string cimport memcpy

cdef enum:
    WIDEST = 96  # enough bytes for any value with its header: DECIMAL(65,30) takes 69


cdef inline char* put_fixed(char* o, const Column* column, const uint8_t* p) noexcept nogil:
    """Write a value as msgpack `bin` of less than 256 bytes into WIDEST reserved bytes. Return the end of the value."""
    cdef char* text = o + 2
    cdef char* end
    cdef Kind kind = column.kind
    cdef double value
    cdef float single
    if kind == Kind.SIGNED:
        end = put_signed(text, p, column.size)
    elif kind == Kind.UNSIGNED:
        end = put_unsigned(text, p, column.size)
    elif kind == Kind.DATETIME:
        end = put_datetime2(text, p, column.detail)
    elif kind == Kind.TIMESTAMP:
        end = put_timestamp2(text, p, column.detail)
    elif kind == Kind.DECIMAL:
        end = put_decimal(text, p, column.precision, column.scale)
    elif kind == Kind.DOUBLE:
        memcpy(&value, p, 8)
        end = put_float(text, value, False)
    elif kind == Kind.FLOAT:
        memcpy(&single, p, 4)
        end = put_float(text, single, True)
    elif kind == Kind.DATE:
        end = put_date3(text, p)
    elif kind == Kind.TIME:
        end = put_time2(text, p, column.detail)
    elif kind == Kind.YEAR:
        end = put_padded(text, 1900 + p[0] if p[0] else 0, 4)
    elif kind == Kind.BIT:
        end = put_digits(text, be(p, column.size))
    elif kind == Kind.OLD_TIME:
        end = put_old_time(text, p, column.size, column.detail)
    elif kind == Kind.OLD_DATETIME:
        end = put_old_datetime(text, p, column.size, column.detail)
    else:
        end = put_old_timestamp(text, p, column.detail)
    put_bin(o, <uint8_t> (end - text))
    return end
