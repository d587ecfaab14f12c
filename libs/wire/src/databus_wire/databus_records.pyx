"""Writes the records of the format `databus`: one for each rows event, with all its rows."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free
from databus_wire.json_base64 cimport measure, write_rows
from databus_wire.json_fast_path cimport put_integer
from databus_wire.msgpack_events cimport Text, is_text
from databus_wire.output cimport Output, append, append_bytes, clear, end_at, room
from databus_wire.rows_writer cimport Rows, RowsWriter, Transaction, images_of, require_actions, written
from libc.stdint cimport uint64_t


@cython.final
cdef class DatabusWriter(RowsWriter):
    cdef tuple heads  # by `Action`: the value up to its rows
    cdef object position_of  # returns a key up to the offset
    cdef bytes file, position  # the binlog file of the last key, and that key up to the offset
    cdef Output key, value

    def __init__(self, tuple heads not None, position_of not None):
        require_actions(heads)
        self.heads, self.position_of = heads, position_of

    def __dealloc__(self):
        PyMem_Free(self.key.data)
        PyMem_Free(self.value.data)

    cdef int trim(self) except -1:
        return clear(&self.value)

    cdef bint write(self, const Transaction* transaction, const Rows* rows) except -1:
        cdef Py_ssize_t size
        if not self.choose_for_all(rows) or not self.has_room(rows):
            return False
        size = measure(images_of(rows))
        self.write_key(transaction.file, rows.end)
        clear(&self.value)
        append_bytes(&self.value, <bytes> self.heads[<int> rows.action])
        write_rows(images_of(rows), room(&self.value, size))
        self.value.size += size
        append(&self.value, b"}", 1)
        return self.pack(transaction, written(&self.key), written(&self.value), rows.first)

    cdef int write_key(self, Text file, uint64_t end) except -1:
        if self.file is None or not is_text(file, PyBytes_AS_STRING(self.file), PyBytes_GET_SIZE(self.file)):
            name = file.data[:file.size]
            self.position = self.position_of(name.decode())
            self.file = name
        self.key.size = 0
        append_bytes(&self.key, self.position)
        end_at(&self.key, put_integer(end, room(&self.key, 20)))
        return append(&self.key, b'},"Action":"DML"}', 17)
