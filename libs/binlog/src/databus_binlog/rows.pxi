# Row images to msgpack: one array per image, the text of each value as `bin`, NULL as nil, an absent column as false.

cdef enum Kind:
    SIGNED
    UNSIGNED       # also ENUM and SET
    SINGLE
    DOUBLE_
    DECIMAL_
    BITS
    YEAR_
    DATE_
    TIME_
    DATETIME_
    TIMESTAMP_
    OLD_TIME       # the formats before MySQL 5.6
    OLD_DATETIME
    OLD_TIMESTAMP
    BYTES          # passed through: UTF-8, VARBINARY, BLOB, GEOMETRY, VECTOR. From here on a value brings its length
    PADDED         # BINARY(n): the log drops trailing zero bytes
    ONE_BYTE_TEXT  # through a table of 256
    CODEC_TEXT     # through a function of charsets.py
    JSON_

cdef enum:
    HIDDEN_SIZE = 8  # bytes of a hidden column
    WIDEST = 96    # bytes of the longest value of a fixed size with its head: DECIMAL(65,30) takes 70


cdef struct Column:
    Kind kind
    uint32_t size       # bytes of a value of fixed size, or of the length before it
    uint32_t detail     # fraction digits, or bytes to pad to, or index of a function
    uint8_t precision
    uint8_t scale
    bint compressed
    const uint8_t* utf8  # ONE_BYTE_TEXT: 256 times length and three bytes


cdef struct Image:
    const uint8_t* present  # bitmap of the columns that are there, NULL if all are
    uint32_t null_bytes     # of its bitmap of NULLs, which counts only those
    bint partial            # PARTIAL_UPDATE_ROWS: the image may hold JSON as diffs from the image before


cdef struct RowImages:
    const Column* columns
    uint32_t count          # columns, without the hidden ones that follow them
    uint32_t hidden
    uint32_t json_columns
    uint32_t sides          # images of a row: an update has two, before and after
    Image[2] images
    size_t limit            # bytes that compressed values may inflate to
    size_t inflated
    Buffer* scratch         # what a compressed value inflates to
    Buffer* json            # where in the output each JSON text of the image before is: start, size
    uint32_t written        # images
    uint32_t at             # the column at hand, for the error's text


cdef Fault write_images(RowImages* rows, const uint8_t* p, const uint8_t* end, Buffer* out) except RAISED:
    """Write every row between `p` and `end`: one image, or of an update two, of which the second may take no bytes."""
    cdef Fault fault
    cdef const uint8_t* row
    cdef uint32_t side
    if p == end:  # of an image without columns nothing is logged, not even how often
        return NO_COLUMNS
    while p < end:
        row = p
        for side in range(rows.sides):
            fault = write_image(rows, &rows.images[side], &p, end, out)
            if fault != NONE:
                return fault
            rows.written += 1
        if p == row:
            return NO_COLUMNS
    return NONE


cdef inline bint bit(const uint8_t* bitmap, uint32_t index) noexcept nogil:
    return bitmap[index >> 3] >> (index & 7) & 1


cdef Fault write_image(
    RowImages* rows, const Image* image, const uint8_t** at, const uint8_t* end, Buffer* out
) except RAISED:
    """Write one image; move `at` behind it."""
    cdef uint32_t count = rows.count, i, place = 0, json_place = 0
    cdef const uint8_t* p = at[0]
    cdef const uint8_t* nulls
    cdef const uint8_t* diffs = NULL
    cdef const Column* column
    cdef char* o
    cdef Fault fault
    if image.partial:
        if not json_diffs(rows, &p, end, &diffs):
            return TRUNCATED
    elif rows.images[1].partial:
        memset(rows.json.data, 0, rows.json.size)
    if end - p < image.null_bytes:
        return TRUNCATED
    nulls = p
    p += image.null_bytes
    o = room(out, 3 + count * WIDEST)
    if o == NULL:
        return NO_MEMORY
    out.size += put_array(o, count) - o
    for i in range(count):
        column = rows.columns + i
        json_place += column.kind == JSON_
        if image.present != NULL and not bit(image.present, i):
            out.data[out.size] = <char> 0xC2
            out.size += 1
            continue
        place += 1
        if bit(nulls, place - 1):
            if diffs != NULL and column.kind == JSON_ and bit(diffs, json_place - 1):
                return BAD_DIFF
            out.data[out.size] = <char> 0xC0
            out.size += 1
            continue
        rows.at = i
        if column.kind < BYTES:
            if end - p < column.size:
                return TRUNCATED
            write_fixed(column, p, out)
            p += column.size
            continue
        if diffs != NULL and column.kind == JSON_ and bit(diffs, json_place - 1):
            fault = write_json_diff(rows, i, &p, end, out)
            if fault == NONE and room(out, (count - i) * WIDEST) == NULL:
                fault = NO_MEMORY
        else:
            fault = write_variable(rows, column, &p, end, out, (count - i) * WIDEST)
        if fault != NONE:
            return fault
    for i in range(count, count + rows.hidden):
        if image.present == NULL or bit(image.present, i):
            place += 1
            if bit(nulls, place - 1):
                continue
            if end - p < HIDDEN_SIZE:
                return TRUNCATED
            p += HIDDEN_SIZE
    at[0] = p
    return NONE


cdef inline void write_fixed(const Column* column, const uint8_t* p, Buffer* out) noexcept:
    """Write a value of fixed size; there is room for it, and its text is shorter than 256 bytes."""
    cdef char* header = out.data + out.size
    cdef char* o = header + 2
    cdef Kind kind = column.kind
    cdef double value
    cdef float single
    if kind == SIGNED:
        o = put_signed(o, p, column.size)
    elif kind == UNSIGNED:
        o = put_unsigned(o, p, column.size)
    elif kind == DATETIME_:
        o = put_datetime2(o, p, column.detail)
    elif kind == TIMESTAMP_:
        o = put_timestamp2(o, p, column.detail)
    elif kind == DECIMAL_:
        o = put_decimal(o, p, column.precision, column.scale)
    elif kind == DOUBLE_:
        memcpy(&value, p, 8)
        o = put_float(o, value, False)
    elif kind == SINGLE:
        memcpy(&single, p, 4)
        o = put_float(o, single, True)
    elif kind == DATE_:
        o = put_date3(o, p)
    elif kind == TIME_:
        o = put_time2(o, p, column.detail)
    elif kind == YEAR_:
        o = padded(o, 1900 + p[0] if p[0] else 0, 4)
    elif kind == BITS:
        o = digits_of(o, be(p, column.size))
    elif kind == OLD_TIME:
        o = put_old_time(o, p, column.detail)
    elif kind == OLD_DATETIME:
        o = put_old_datetime(o, p, column.detail)
    else:
        o = put_old_timestamp(o, p, column.detail)
    header[0] = <char> 0xC4
    header[1] = <char> (o - header - 2)
    out.size += o - header


cdef inline Fault sized(const Column* column, const uint8_t** p, const uint8_t* end, size_t* size) noexcept:
    """Read the length before a value, and move to what follows the value."""
    if <size_t> (end - p[0]) < column.size:
        return TRUNCATED
    size[0] = le(p[0], column.size)
    if <size_t> (end - p[0]) - column.size < size[0]:
        return TRUNCATED
    p[0] += column.size + size[0]
    return NONE


cdef Fault write_variable(
    RowImages* rows, const Column* column, const uint8_t** p, const uint8_t* end, Buffer* out, size_t after
) except RAISED:
    """Write a value that brings its length, and leave room for `after` more bytes."""
    cdef size_t size, head
    cdef Fault fault = sized(column, p, end, &size)
    cdef const uint8_t* value
    cdef char* o
    if fault != NONE:
        return fault
    value = p[0] - size
    if column.compressed:
        rows.inflated += inflated_size(value, size)
        if rows.inflated > rows.limit:
            return TOO_LARGE
        fault = inflate_column(rows.scratch, value, size)
        if fault != NONE:
            return fault
        value, size = <const uint8_t*> rows.scratch.data, rows.scratch.size
    if column.kind == BYTES:
        o = room(out, 5 + size + after)
        if o == NULL:
            return NO_MEMORY
        o = put_bin(o, size)
        memcpy(o, value, size)
        out.size = o + size - out.data
        return NONE
    if column.kind == PADDED:
        if size > column.detail:
            return TRUNCATED
        o = room(out, 5 + column.detail + after)
        if o == NULL:
            return NO_MEMORY
        o = put_bin(o, column.detail)
        memcpy(o, value, size)
        memset(o + size, 0, column.detail - size)
        out.size = o + column.detail - out.data
        return NONE
    if column.kind == ONE_BYTE_TEXT:
        o = room(out, 5 + 3 * size + after)
        if o == NULL:
            return NO_MEMORY
        write_by_table(column.utf8, value, size, out)
        return NONE
    head = out.size  # the text's length shows when it is written
    if room(out, 5) == NULL:
        return NO_MEMORY
    out.size += 5
    if column.kind == JSON_:
        fault = put_json(out, value, value + size)
    else:
        fault = write_by_codec(column.detail, value, size, out)
    return end_text(rows, column, head, out, fault, after)


cdef Fault end_text(RowImages* rows, const Column* column, size_t head, Buffer* out, Fault fault, size_t after) noexcept:
    """Write the head of a text that begins five bytes after it; remember where a JSON text is."""
    cdef size_t size = out.size - head - 5
    cdef size_t* place
    out.data[head] = <char> 0xC6
    put_big32(out.data + head + 1, <uint32_t> size)
    if rows.images[1].partial and column.kind == JSON_:
        place = <size_t*> rows.json.data + 2 * (column - rows.columns)
        place[0], place[1] = head + 5, size
    return NO_MEMORY if fault == NONE and room(out, after) == NULL else fault


cdef void set_present(Image* image, const uint8_t* bitmap, uint32_t columns) noexcept:
    cdef uint32_t i, present = 0
    for i in range(columns):
        present += bit(bitmap, i)
    image.present = bitmap
    if present == columns:
        image.present = NULL
    image.null_bytes = (present + 7) // 8
