# Row images to msgpack: one array per image, the canonical text of each value as `bin`, NULL as nil.

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
    BYTES          # passed through: UTF-8, VARBINARY, BLOB, GEOMETRY, VECTOR
    PADDED         # BINARY(n): the log drops trailing zero bytes
    ONE_BYTE_TEXT  # through a table of 256
    CODEC_TEXT     # through one of Python's codecs
    JSON_

cdef enum:
    WIDEST = 96    # bytes of the longest value of a fixed size with its header: DECIMAL(65,30) takes 70


cdef struct Column:
    Kind kind
    uint32_t size       # bytes of a value of fixed size, or of the length before it
    uint32_t detail     # fraction digits, or bytes to pad to, or index of a codec
    uint8_t precision
    uint8_t scale
    const uint8_t* utf8  # ONE_BYTE_TEXT: 256 times length and three bytes


cdef Fault write_images(
    const Column* columns, uint32_t count, const uint8_t* p, const uint8_t* end, Buffer* out, uint32_t* images, uint32_t* at
) noexcept nogil:
    """Write every image between `p` and `end`. On a fault `at` is the index of its column."""
    cdef uint32_t null_bytes = (count + 7) // 8, i
    cdef const uint8_t* nulls
    cdef char* o
    cdef Fault fault
    while p < end:
        if end - p < null_bytes:
            return TRUNCATED
        nulls = p
        p += null_bytes
        o = room(out, 3 + count * WIDEST)
        if o == NULL:
            return NO_MEMORY
        out.size += put_array(o, count) - o
        for i in range(count):
            if nulls[i >> 3] >> (i & 7) & 1:
                out.data[out.size] = <char> 0xC0
                out.size += 1
                continue
            at[0] = i
            if columns[i].kind < BYTES:
                if end - p < columns[i].size:
                    return TRUNCATED
                write_fixed(&columns[i], p, out)
                p += columns[i].size
            else:
                fault = write_variable(&columns[i], &p, end, out, (count - i) * WIDEST)
                if fault != NONE:
                    return fault
        images[0] += 1
    return NONE


cdef inline void write_fixed(const Column* column, const uint8_t* p, Buffer* out) noexcept nogil:
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
    else:
        o = digits_of(o, be(p, column.size))
    header[0] = <char> 0xC4
    header[1] = <char> (o - header - 2)
    out.size += o - header


cdef Fault write_variable(
    const Column* column, const uint8_t** p, const uint8_t* end, Buffer* out, size_t after
) noexcept nogil:
    """Write a value that brings its length, and leave room for `after` more bytes."""
    cdef size_t size, header
    cdef Fault fault
    cdef const uint8_t* value
    cdef char* o
    if <size_t> (end - p[0]) < column.size:
        return TRUNCATED
    size = le(p[0], column.size)
    value = p[0] + column.size
    if <size_t> (end - value) < size:
        return TRUNCATED
    p[0] = value + size
    if column.kind == BYTES:
        o = room(out, 5 + size + after)
        if o == NULL:
            return NO_MEMORY
        out.size += put_bin(o, size) - o
        memcpy(out.data + out.size, value, size)
        out.size += size
        return NONE
    if column.kind == PADDED:
        if size > column.detail:
            return TRUNCATED
        o = room(out, 5 + column.detail + after)
        if o == NULL:
            return NO_MEMORY
        out.size += put_bin(o, column.detail) - o
        memcpy(out.data + out.size, value, size)
        memset(out.data + out.size + size, 0, column.detail - size)
        out.size += column.detail
        return NONE
    if column.kind == ONE_BYTE_TEXT:
        o = room(out, 5 + 3 * size + after)
        if o == NULL:
            return NO_MEMORY
        write_by_table(column.utf8, value, size, out)
        return NONE
    header = out.size  # the text's length shows when it is written
    if room(out, 5) == NULL:
        return NO_MEMORY
    out.size += 5
    if column.kind == JSON_:
        fault = put_json(out, value, value + size)
    else:
        fault = write_by_codec(column.detail, value, size, out)
    out.data[header] = <char> 0xC6
    put_big(out.data + header + 1, out.size - header - 5, 4)
    return NO_MEMORY if fault == NONE and room(out, after) == NULL else fault


cdef void write_by_table(const uint8_t* table, const uint8_t* p, size_t size, Buffer* out) noexcept nogil:
    cdef size_t longer = 0, i
    cdef uint8_t high = 0
    cdef const uint8_t* entry
    cdef char* o = out.data + out.size
    for i in range(size):
        high |= p[i]
    if high < 0x80:  # ASCII, which every one of these sets contains
        o = put_bin(o, size)
        memcpy(o, p, size)
        out.size = o + size - out.data
        return
    for i in range(size):
        longer += table[4 * p[i]] - 1
    o = put_bin(o, size + longer)
    for i in range(size):
        entry = table + 4 * p[i]
        memcpy(o, entry + 1, 3)
        o += entry[0]
    out.size = o - out.data


#: names of the codecs that columns refer to by index
CODECS = []


cdef Fault write_by_codec(uint32_t codec, const uint8_t* p, size_t size, Buffer* out) noexcept with gil:
    try:
        text = PyBytes_FromStringAndSize(<const char*> p, size).decode(CODECS[codec]).encode()
    except UnicodeError:
        return BAD_TEXT
    return append(out, PyBytes_AS_STRING(text), len(text))


cdef class Plan:
    """How to read the rows of one table map."""
    cdef object table      # TableMap, None if the table is not wanted
    cdef str name          # schema.name
    cdef str refused       # why rows can't be read: every wanted row event of the table fails with it
    cdef type refusal
    cdef list tables       # keeps character tables alive
    cdef Column* columns
    cdef uint32_t count

    def __cinit__(self):
        self.tables = []

    def __dealloc__(self):
        free(self.columns)

    @staticmethod
    cdef Plan unwanted():
        return Plan.__new__(Plan)

    @staticmethod
    cdef Plan of(object table):
        cdef Plan plan = Plan.__new__(Plan)
        plan.table = table
        plan.name = f"{table.schema}.{table.name}"
        plan.count = len(table.columns)
        plan.columns = <Column*> calloc(max(plan.count, 1), sizeof(Column))
        if plan.columns == NULL:
            raise MemoryError
        for i, column in enumerate(table.columns):
            try:
                plan.layout(&plan.columns[i], column)
            except (MissingMetadata, UnsupportedColumn) as error:
                plan.refusal = type(error)
                plan.refused = f"column {column.name or i} of {plan.name}: {error}"
                break
        return plan

    cdef int layout(self, Column* c, object column) except -1:
        cdef int code = column.type, meta = column.metadata
        if code in INTEGER_SIZES:
            if column.unsigned is None:
                raise MissingMetadata("whether it is unsigned is not logged; set binlog_row_metadata=FULL")
            c.kind, c.size = (UNSIGNED if column.unsigned else SIGNED), INTEGER_SIZES[code]
        elif code in (T.ENUM, T.SET):
            c.kind, c.size = UNSIGNED, meta
        elif code == T.FLOAT:
            c.kind, c.size = SINGLE, 4
        elif code == T.DOUBLE:
            c.kind, c.size = DOUBLE_, 8
        elif code == T.NEWDECIMAL:
            c.kind, c.precision, c.scale = DECIMAL_, meta >> 8, meta & 255
            c.size = decimal_size(c.precision, c.scale)
            if not 0 < c.precision <= 65 or c.scale > c.precision:
                raise UnsupportedColumn(f"DECIMAL({c.precision},{c.scale}) does not exist")
        elif code == T.BIT:
            c.kind, c.size = BITS, (meta + 7) // 8
            if not 0 < meta <= 64:
                raise UnsupportedColumn(f"BIT({meta}) does not exist")
        elif code == T.YEAR:
            c.kind, c.size = YEAR_, 1
        elif code in (T.DATE, T.NEWDATE):
            c.kind, c.size = DATE_, 3
        elif code in TEMPORAL_KINDS:
            c.kind, c.size = TEMPORAL_KINDS[code]
            c.detail = meta
            c.size += (meta + 1) // 2
            if meta > 6:
                raise UnsupportedColumn(f"{meta} digits of a second do not exist")
        elif code == T.JSON:
            c.kind, c.size = JSON_, meta
        elif code in (T.GEOMETRY, T.VECTOR):
            c.kind, c.size = BYTES, meta
        elif code == T.BLOB:
            self.text(c, column, meta, 0)
        elif code in (T.VARCHAR, T.VAR_STRING):
            self.text(c, column, 1 if meta < 256 else 2, 0)
        elif code == T.STRING:
            self.text(c, column, 1 if meta < 256 else 2, meta)
        else:
            raise UnsupportedColumn(f"type {code} ({T(code).name}) can't be decoded; rebuild or exclude the table")
        if c.size > 8 and c.kind != DECIMAL_:
            raise UnsupportedColumn(f"values of {c.size} bytes do not exist for type {code}")
        return 0

    cdef int text(self, Column* c, object column, uint32_t prefix, uint32_t width) except -1:
        """Lay out a string: `prefix` bytes of length, `width` to pad a binary one to."""
        charset = column.charset
        c.size = prefix
        if charset is None:
            raise MissingMetadata("its character set is not logged; set binlog_row_metadata=FULL")
        if charset == "binary":
            c.kind, c.detail = (PADDED if width else BYTES), width
        elif charset in charsets.UTF8:
            c.kind = BYTES
        elif charsets.single_byte_table(charset) is not None:
            packed = b"".join(bytes([len(x)]) + x.ljust(3, b"\0") for x in charsets.single_byte_table(charset))
            self.tables.append(packed)
            c.kind, c.utf8 = ONE_BYTE_TEXT, <const uint8_t*> PyBytes_AS_STRING(packed)
        elif charsets.codec_of(charset) is not None:
            codec = charsets.codec_of(charset)
            if codec not in CODECS:
                CODECS.append(codec)
            c.kind, c.detail = CODEC_TEXT, CODECS.index(codec)
        else:
            raise UnsupportedColumn(f"character set {charset} can't be decoded; convert or exclude the table")
        return 0


cdef dict INTEGER_SIZES = {T.TINY: 1, T.SHORT: 2, T.INT24: 3, T.LONG: 4, T.LONGLONG: 8}
cdef dict TEMPORAL_KINDS = {T.TIME2: (TIME_, 3), T.DATETIME2: (DATETIME_, 5), T.TIMESTAMP2: (TIMESTAMP_, 4)}
