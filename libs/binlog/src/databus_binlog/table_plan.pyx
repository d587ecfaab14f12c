"""How to read the rows of a table."""

from cpython.bytes cimport PyBytes_AS_STRING
from cpython.ref cimport PyObject
from databus_binlog.columns cimport Kind
from databus_binlog.number_text cimport decimal_size
from libc.stdlib cimport calloc, free

from databus_binlog import charsets
from databus_binlog.errors import MissingMetadata, UnsupportedColumn
from databus_binlog.table_map import NOT_LOGGED, FieldType as T

cdef dict INTEGER_SIZES = {T.TINY: 1, T.SHORT: 2, T.INT24: 3, T.LONG: 4, T.LONGLONG: 8}
cdef dict FIXED = {
    T.FLOAT: (Kind.FLOAT, 4), T.DOUBLE: (Kind.DOUBLE, 8), T.YEAR: (Kind.YEAR, 1),
    T.DATE: (Kind.DATE, 3), T.NEWDATE: (Kind.DATE, 3),
}
#: type → kind, and bytes without those of the fraction
cdef dict TEMPORAL = {T.TIME2: (Kind.TIME, 3), T.DATETIME2: (Kind.DATETIME, 5), T.TIMESTAMP2: (Kind.TIMESTAMP, 4)}
#: type → kind, and bytes for 0 to 6 digits of the fraction
cdef dict OLD_TEMPORAL = {
    T.TIME: (Kind.OLD_TIME, (3, 4, 4, 5, 5, 5, 6)),
    T.DATETIME: (Kind.OLD_DATETIME, (8, 6, 6, 7, 7, 7, 8)),
    T.TIMESTAMP: (Kind.OLD_TIMESTAMP, (4, 5, 5, 6, 6, 7, 7)),
}


cdef class TablePlan:
    def __cinit__(self):
        self.references = []

    def __dealloc__(self):
        free(self.columns)

    @staticmethod
    cdef TablePlan unwanted(bytes layout):
        cdef TablePlan plan = TablePlan.__new__(TablePlan)
        plan.layout = layout
        return plan

    @staticmethod
    cdef TablePlan of(bytes layout, object table):
        cdef TablePlan plan = TablePlan.__new__(TablePlan)
        plan.layout = layout
        plan.table = table
        plan.fingerprint = table.fingerprint.encode()
        plan.name = table.full_name
        plan.count, plan.hidden = len(table.columns), table.hidden
        plan.columns = <Column*> calloc(max(plan.count, 1), sizeof(Column))
        if plan.columns == NULL:
            raise MemoryError
        for i, column in enumerate(table.columns):
            try:
                plan.lay_out(&plan.columns[i], column)
            except (MissingMetadata, UnsupportedColumn) as error:
                plan.error_class = type(error)
                plan.error_message = f"column {column.name or i} of {plan.name}: {error}"
                break
            plan.json_columns += plan.columns[i].kind == Kind.JSON
        return plan

    cdef int lay_out(self, Column* c, object column) except -1:
        """Set how the values of a column are stored. Raises MissingMetadata or UnsupportedColumn."""
        cdef int code = column.type, meta = column.metadata
        if code in INTEGER_SIZES:
            if column.unsigned is None:
                raise MissingMetadata("whether it is unsigned is not logged; set binlog_row_metadata=FULL")
            c.kind, c.size = (Kind.UNSIGNED if column.unsigned else Kind.SIGNED), INTEGER_SIZES[code]
        elif code in (T.ENUM, T.SET):
            c.kind, c.size = Kind.UNSIGNED, meta
        elif code in FIXED:
            c.kind, c.size = FIXED[code]
        elif code == T.NEWDECIMAL:
            c.kind, c.precision, c.scale = Kind.DECIMAL, meta >> 8, meta & 255
            if not 0 < c.precision <= 65 or c.scale > min(c.precision, 38):
                raise UnsupportedColumn(f"DECIMAL({c.precision},{c.scale}) does not exist")
            c.size = decimal_size(c.precision, c.scale)
        elif code == T.BIT:
            c.kind, c.size = Kind.BIT, (meta + 7) // 8
            if not 0 < meta <= 64:
                raise UnsupportedColumn(f"BIT({meta}) does not exist")
        elif code in TEMPORAL or code in OLD_TEMPORAL:
            self.lay_out_time(c, code, meta)
        elif code == T.JSON:
            c.kind, c.size = Kind.JSON, meta
        elif code in (T.GEOMETRY, T.VECTOR):
            c.kind, c.size = Kind.BYTES, meta
        elif code in (T.BLOB, T.BLOB_COMPRESSED):
            self.lay_out_string(c, column, meta, 0)
        elif code in (T.VARCHAR, T.VAR_STRING, T.VARCHAR_COMPRESSED):
            self.lay_out_string(c, column, 1 if meta < 256 else 2, 0)
        elif code == T.STRING:
            self.lay_out_string(c, column, 1 if meta < 256 else 2, meta)
        else:
            raise UnsupportedColumn(f"type {code} ({T(code).name}) can't be decoded; rebuild or exclude the table")
        c.compressed = code in (T.BLOB_COMPRESSED, T.VARCHAR_COMPRESSED)
        if c.size > 8 and c.kind != Kind.DECIMAL or c.kind >= Kind.BYTES and c.size == 0:
            raise UnsupportedColumn(f"a size of {c.size} bytes does not exist for type {code} ({T(code).name})")
        return 0

    cdef int lay_out_time(self, Column* c, int code, int digits) except -1:
        if digits == NOT_LOGGED:
            raise MissingMetadata(
                "the number of its fractional digits is not logged; run ALTER TABLE … FORCE with"
                " mysql56_temporal_format=ON"
            )
        if digits > 6:
            raise UnsupportedColumn(f"{digits} fractional digits of a second do not exist")
        c.detail = digits
        if code in TEMPORAL:
            c.kind, c.size = TEMPORAL[code]
            c.size += (digits + 1) // 2
        else:
            c.kind, sizes = OLD_TEMPORAL[code]
            c.size = sizes[digits]
        return 0

    cdef int lay_out_string(self, Column* c, object column, uint32_t prefix, uint32_t width) except -1:
        """Set how a string is stored. Its length takes `prefix` bytes; a BINARY value is padded to `width` bytes."""
        charset = column.charset
        c.size = prefix
        if charset is None:
            raise MissingMetadata("its character set is not logged; set binlog_row_metadata=FULL")
        if charset == "binary":
            c.kind, c.detail = (Kind.PADDED if width else Kind.BYTES), width
        elif charset in charsets.UTF8:
            c.kind = Kind.BYTES
        elif charsets.single_byte_table(charset) is not None:
            table = charsets.packed_table(charset)
            self.references.append(table)
            c.kind, c.charset = Kind.SINGLE_BYTE_TEXT, PyBytes_AS_STRING(table)
        elif charsets.multi_byte(charset) is not None:
            decode = charsets.multi_byte(charset)
            self.references.append(decode)
            c.kind, c.charset = Kind.MULTI_BYTE_TEXT, <PyObject*> decode
        else:
            raise UnsupportedColumn(f"character set {charset} can't be decoded; convert or exclude the table")
        return 0
