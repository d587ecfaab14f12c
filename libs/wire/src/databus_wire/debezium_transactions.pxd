"""Transaction metadata of `debezium-json`, for the writers of an output's tables."""

cimport cython
from databus_wire.output cimport Output
from databus_wire.rows_writer cimport OpenBatches, Rows, Transaction
from libc.stdint cimport int64_t, uint64_t


@cython.final
cdef class TransactionWriter:
    cdef object partition, begin_message, end_message  # see debezium_transactions.pyi
    cdef bytes head, between, middle, tail  # of a transaction block
    cdef uint64_t attempt  # the attempt to publish a transaction that has a BEGIN
    cdef bytes id  # in JSON
    cdef dict counts  # name of a table → number of its rows that were written

    cdef bint begin(self, OpenBatches open, const Transaction* transaction, const Rows* rows) except -1
    cdef int64_t count(self, str table, int64_t rows) except -1
    cdef int append_block(self, Output* out, int64_t total_order, int64_t table_order) except -1
    cdef bint end(self, OpenBatches open, const Transaction* transaction) except -1
    cdef bint pack(self, OpenBatches open, const Transaction* transaction, bytes key, bytes value, int64_t row) except -1
