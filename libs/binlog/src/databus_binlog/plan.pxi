# How to read the rows of one table map, worked out once for each layout.

cdef class Plan:
    cdef bytes layout      # the table map's body behind the table's number and flags
    cdef object table      # TableMap, None if the table is not wanted
    cdef bytes fingerprint
    cdef str name          # schema.name
    cdef str refused       # why rows can't be read: every wanted row event of the table fails with it
    cdef type refusal
    cdef list kept         # keeps character tables alive
    cdef Column* columns
    cdef uint32_t count, hidden, json_columns
    cdef uint64_t used     # the call that last gave out rows of it

    def __cinit__(self):
        self.kept = []

    def __dealloc__(self):
        free(self.columns)

    @staticmethod
    cdef Plan unwanted(bytes layout):
        cdef Plan plan = Plan.__new__(Plan)
        plan.layout = layout
        return plan

    @staticmethod
    cdef Plan of(bytes layout, object table):
        cdef Plan plan = Plan.__new__(Plan)
        plan.layout = layout
        plan.table = table
        plan.fingerprint = table.fingerprint.encode()
        plan.name = f"{table.schema}.{table.name}"
        plan.count, plan.hidden = len(table.columns), table.hidden
        plan.columns = <Column*> calloc(max(plan.count, 1), sizeof(Column))
        if plan.columns == NULL:
            raise MemoryError
        for i, column in enumerate(table.columns):
            try:
                plan.lay_out(&plan.columns[i], column)
            except (MissingMetadata, UnsupportedColumn) as error:
                plan.refusal = type(error)
                plan.refused = f"column {column.name or i} of {plan.name}: {error}"
                break
            plan.json_columns += plan.columns[i].kind == JSON_
        return plan

    cdef int lay_out(self, Column* c, object column) except -1:
        cdef int code = column.type, meta = column.metadata
        if code in INTEGER_SIZES:
            if column.unsigned is None:
                raise MissingMetadata("whether it is unsigned is not logged; set binlog_row_metadata=FULL")
            c.kind, c.size = (UNSIGNED if column.unsigned else SIGNED), INTEGER_SIZES[code]
        elif code in (T.ENUM, T.SET):
            c.kind, c.size = UNSIGNED, meta
        elif code in FIXED:
            c.kind, c.size = FIXED[code]
        elif code == T.NEWDECIMAL:
            c.kind, c.precision, c.scale = DECIMAL_, meta >> 8, meta & 255
            if not 0 < c.precision <= 65 or c.scale > min(c.precision, 38):
                raise UnsupportedColumn(f"DECIMAL({c.precision},{c.scale}) does not exist")
            c.size = decimal_size(c.precision, c.scale)
        elif code == T.BIT:
            c.kind, c.size = BITS, (meta + 7) // 8
            if not 0 < meta <= 64:
                raise UnsupportedColumn(f"BIT({meta}) does not exist")
        elif code in TEMPORAL or code in OLD_TEMPORAL:
            self.temporal(c, code, meta)
        elif code == T.JSON:
            c.kind, c.size = JSON_, meta
        elif code in (T.GEOMETRY, T.VECTOR):
            c.kind, c.size = BYTES, meta
        elif code in (T.BLOB, T.BLOB_COMPRESSED):
            self.text(c, column, meta, 0)
        elif code in (T.VARCHAR, T.VAR_STRING, T.VARCHAR_COMPRESSED):
            self.text(c, column, 1 if meta < 256 else 2, 0)
        elif code == T.STRING:
            self.text(c, column, 1 if meta < 256 else 2, meta)
        else:
            raise UnsupportedColumn(f"type {code} ({T(code).name}) can't be decoded; rebuild or exclude the table")
        c.compressed = code in (T.BLOB_COMPRESSED, T.VARCHAR_COMPRESSED)
        if c.size > 8 and c.kind != DECIMAL_ or c.kind >= BYTES and c.size == 0:
            raise UnsupportedColumn(f"values of {c.size} bytes do not exist for type {code}")
        return 0

    cdef int temporal(self, Column* c, int code, int digits) except -1:
        if digits == NOT_LOGGED:
            raise MissingMetadata("its digits of a second are not logged; run ALTER TABLE … FORCE with mysql56_temporal_format=ON")
        if digits > 6:
            raise UnsupportedColumn(f"{digits} digits of a second do not exist")
        c.detail = digits
        if code in TEMPORAL:
            c.kind, c.size = TEMPORAL[code]
            c.size += (digits + 1) // 2
        else:
            c.kind, sizes = OLD_TEMPORAL[code]
            c.size = sizes[digits]
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
            packed = charsets.packed_table(charset)
            self.kept.append(packed)
            c.kind, c.utf8 = ONE_BYTE_TEXT, <const uint8_t*> PyBytes_AS_STRING(packed)
        elif charsets.multi_byte(charset) is not None:
            decode = charsets.multi_byte(charset)
            if decode not in CODECS:
                CODECS.append(decode)
            c.kind, c.detail = CODEC_TEXT, CODECS.index(decode)
        else:
            raise UnsupportedColumn(f"character set {charset} can't be decoded; convert or exclude the table")
        return 0


cdef dict INTEGER_SIZES = {T.TINY: 1, T.SHORT: 2, T.INT24: 3, T.LONG: 4, T.LONGLONG: 8}
cdef dict FIXED = {
    T.FLOAT: (SINGLE, 4), T.DOUBLE: (DOUBLE_, 8), T.YEAR: (YEAR_, 1), T.DATE: (DATE_, 3), T.NEWDATE: (DATE_, 3),
}
#: bytes without a fraction
cdef dict TEMPORAL = {T.TIME2: (TIME_, 3), T.DATETIME2: (DATETIME_, 5), T.TIMESTAMP2: (TIMESTAMP_, 4)}
#: bytes by digits of the fraction
cdef dict OLD_TEMPORAL = {
    T.TIME: (OLD_TIME, (3, 4, 4, 5, 5, 5, 6)),
    T.DATETIME: (OLD_DATETIME, (8, 6, 6, 7, 7, 7, 8)),
    T.TIMESTAMP: (OLD_TIMESTAMP, (4, 5, 5, 6, 6, 7, 7)),
}
