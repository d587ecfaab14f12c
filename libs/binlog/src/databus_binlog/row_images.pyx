"""Writes row images as msgpack."""

from cpython.ref cimport PyObject
from databus_binlog.binary_json cimport put_json
from databus_binlog.buffer cimport room
from databus_binlog.charset_text cimport append_decoded, write_single_byte
from databus_binlog.columns cimport Kind, read_length
from databus_binlog.fixed_values cimport WIDEST, put_fixed
from databus_binlog.inflate cimport inflate_column, inflated_size
from databus_binlog.msgpack cimport put_array, put_bin, put_bin32, put_bool, put_nil
from databus_binlog.partial_json cimport read_json_diffs, write_json_diff
from libc.string cimport memcpy, memset

cdef enum:
    HIDDEN_SIZE = 8  # bytes of a hidden column


cdef Fault write_images(RowImages* rows, const uint8_t* p, const uint8_t* end, Buffer* out) except Fault.RAISED:
    """Write every row between `p` and `end`. A row is one image; a row of an update is two, before and after."""
    cdef Fault fault
    cdef const uint8_t* row
    cdef uint32_t side
    if p == end:  # an image without columns takes no bytes, so the number of rows is not known
        return Fault.NO_COLUMNS
    while p < end:
        row = p
        for side in range(rows.sides):
            fault = write_image(rows, &rows.images[side], &p, end, out)
            if fault != Fault.NONE:
                return fault
            rows.written += 1
        if p == row:  # at most one of an update's two images may take no bytes
            return Fault.NO_COLUMNS
    return Fault.NONE


cdef Fault write_image(
    RowImages* rows, const Image* image, const uint8_t** at, const uint8_t* end, Buffer* out
) except Fault.RAISED:
    """Write one image; move `at` to its end."""
    cdef uint32_t count = rows.count, i, index = 0, json_index = 0
    cdef const Column* columns = rows.columns
    cdef const uint8_t* present = image.present
    cdef const uint8_t* p = at[0]
    cdef const uint8_t* nulls
    cdef const uint8_t* diffs = NULL
    cdef const Column* column
    cdef char* o
    cdef Fault fault
    if image.partial:
        if not read_json_diffs(rows, &p, end, &diffs):
            return Fault.TRUNCATED
    elif rows.images[1].partial:
        memset(rows.json.data, 0, rows.json.size)
    if end - p < image.null_bytes:
        return Fault.TRUNCATED
    nulls = p
    p += image.null_bytes
    o = room(out, 3 + count * WIDEST)
    if o == NULL:
        return Fault.NO_MEMORY
    out.size += put_array(o, count) - o
    for i in range(count):
        column = columns + i
        json_index += column.kind == Kind.JSON
        if present != NULL and not bit(present, i):
            put_bool(out.data + out.size, False)
            out.size += 1
            continue
        index += 1
        if bit(nulls, index - 1):
            if diffs != NULL and column.kind == Kind.JSON and bit(diffs, json_index - 1):
                return Fault.BAD_DIFF
            put_nil(out.data + out.size)
            out.size += 1
            continue
        rows.failed = i
        if column.kind < Kind.BYTES:
            if end - p < column.size:
                return Fault.TRUNCATED
            out.size = put_fixed(out.data + out.size, column, p) - out.data
            p += column.size
            continue
        if diffs != NULL and column.kind == Kind.JSON and bit(diffs, json_index - 1):
            fault = write_json_diff(rows, i, &p, end, out)
            if fault == Fault.NONE and room(out, (count - i) * WIDEST) == NULL:
                fault = Fault.NO_MEMORY
        else:
            fault = write_variable(rows, column, &p, end, out, (count - i) * WIDEST)
        if fault != Fault.NONE:
            return fault
    for i in range(count, count + rows.hidden):
        if present == NULL or bit(present, i):
            index += 1
            if bit(nulls, index - 1):
                continue
            if end - p < HIDDEN_SIZE:
                return Fault.TRUNCATED
            p += HIDDEN_SIZE
    at[0] = p
    return Fault.NONE


cdef Fault write_variable(
    RowImages* rows, const Column* column, const uint8_t** p, const uint8_t* end, Buffer* out, size_t after
) except Fault.RAISED:
    """Write a value that follows its length, and reserve `after` more bytes."""
    cdef size_t size
    cdef Fault fault = read_length(column, p, end, &size)
    cdef const uint8_t* value
    cdef char* o
    if fault != Fault.NONE:
        return fault
    value = p[0] - size
    if column.compressed:
        rows.inflated += inflated_size(value, size)
        if rows.inflated > rows.limit:
            return Fault.TOO_LARGE
        fault = inflate_column(rows.scratch, value, size)
        if fault != Fault.NONE:
            return fault
        value, size = <const uint8_t*> rows.scratch.data, rows.scratch.size
    if column.kind == Kind.BYTES:
        o = room(out, 5 + size + after)
        if o == NULL:
            return Fault.NO_MEMORY
        o = put_bin(o, size)
        memcpy(o, value, size)
        out.size = o + size - out.data
        return Fault.NONE
    if column.kind == Kind.PADDED:
        if size > column.detail:
            return Fault.TRUNCATED
        o = room(out, 5 + column.detail + after)
        if o == NULL:
            return Fault.NO_MEMORY
        o = put_bin(o, column.detail)
        memcpy(o, value, size)
        memset(o + size, 0, column.detail - size)
        out.size = o + column.detail - out.data
        return Fault.NONE
    if column.kind == Kind.SINGLE_BYTE_TEXT:
        if room(out, 5 + 3 * size + after) == NULL:
            return Fault.NO_MEMORY
        write_single_byte(out, <const uint8_t*> column.charset, value, size)
        return Fault.NONE
    return write_text(rows, column, value, size, out, after)


cdef Fault write_text(
    RowImages* rows, const Column* column, const uint8_t* value, size_t size, Buffer* out, size_t after
) except Fault.RAISED:
    """Write JSON, or text of a multi-byte character set. The size of the output is known only after writing it."""
    cdef size_t header = out.size, start = header + 5
    cdef size_t* json
    cdef Fault fault
    if room(out, 5) == NULL:
        return Fault.NO_MEMORY
    out.size = start
    if column.kind == Kind.JSON:
        fault = put_json(out, value, value + size)
    else:
        fault = append_decoded(out, <object> <PyObject*> column.charset, value, size)
    put_bin32(out.data + header, <uint32_t> (out.size - start))
    if rows.images[1].partial and column.kind == Kind.JSON:
        json = <size_t*> rows.json.data + 2 * (column - rows.columns)
        json[0], json[1] = start, out.size - start
    return Fault.NO_MEMORY if fault == Fault.NONE and room(out, after) == NULL else fault


cdef void set_present(Image* image, const uint8_t* bitmap, uint32_t visible, uint32_t hidden) noexcept nogil:
    """Set which of the table's columns an image has."""
    cdef uint32_t i, present = 0
    for i in range(visible):
        present += bit(bitmap, i)
    image.complete = present == visible
    for i in range(visible, visible + hidden):
        present += bit(bitmap, i)
    image.present = bitmap
    if present == visible + hidden:
        image.present = NULL
    image.null_bytes = (present + 7) // 8
