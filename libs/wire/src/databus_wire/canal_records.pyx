"""Writes the records of the format `canal-json`: one for each rows event, with all its rows, and without a key."""

cimport cython
from databus_wire.json_rows cimport RowWriter
from databus_wire.msgpack_events cimport Text
from databus_wire.msgpack_rows cimport Cursor, read_array
from databus_wire.output cimport Output, append, append_bytes, clear
from databus_wire.rows_writer cimport UPDATE, Rows, RowsWriter, Transaction, images_of, require_actions, written
from databus_wire.templates cimport Template


@cython.final
cdef class CanalWriter(RowsWriter):
    cdef RowWriter rows
    cdef tuple messages  # by `Action`: the parts before the members that have rows, or depend on them, and after these
    cdef object types  # `sqlType` as bytes, or a function that returns it for a row

    def __init__(self, RowWriter rows not None, tuple messages not None, types not None):
        require_actions(messages)
        self.rows, self.messages, self.types = rows, messages, types

    cdef int trim(self) except -1:
        return clear(&self.rows.out)

    cdef bint write(self, const Transaction* transaction, const Rows* rows) except -1:
        cdef Output* out = &self.rows.out
        cdef Text no_key = Text(NULL, 0)
        if not self.choose_for_all(rows) or not self.has_room(rows):
            return False
        before_data, before_old, before_types, rest = self.messages[<int> rows.action]
        clear(out)
        append_bytes(out, before_data)
        self.append_rows(rows, False)
        (<Template?> before_old).append_to(out, transaction, rows)
        if rows.action == UPDATE:
            self.append_rows(rows, True)
        else:
            append(out, b"null", 4)
        append_bytes(out, before_types)
        append_bytes(out, self.types if isinstance(self.types, bytes) else self.types(self.rows.current_row()))
        (<Template?> rest).append_to(out, transaction, rows)
        return self.pack(transaction, no_key, written(out), rows.first)

    cdef int append_rows(self, const Rows* rows, bint changed) except -1:
        """Append an array of the rows, in updates of those after it; or of what was changed, with its values before."""
        cdef Output* out = &self.rows.out
        cdef Cursor images = images_of(rows)
        cdef Py_ssize_t i
        read_array(&images)
        append(out, b"[", 1)
        for i in range(rows.count):
            if i:
                append(out, b",", 1)
            self.rows.load(&images)
            if rows.action == UPDATE:
                self.rows.load_other(&images)
                if not changed:
                    self.rows.swap()
            self.rows.append_object(changed, True)
            if changed:
                self.rows.swap()  # `write` needs the last row as it is after the update
        return append(out, b"]", 1)
