# The values of rows, one row after the other: of lists, or of packed rows, of which no object is made.

cdef struct Cell:
    const char* text  # NULL of a row is NULL here
    Py_ssize_t size
    PyObject* value  # that the text is of; NULL if it is of packed rows


@final
cdef class RowReader:
    cdef list _lists
    cdef Py_buffer _view
    cdef Cursor _cursor
    cdef Py_ssize_t _place, count

    def __cinit__(self, rows):
        if PyObject_CheckBuffer(rows):
            PyObject_GetBuffer(rows, &self._view, PyBUF_SIMPLE)
            self._cursor.at = <const unsigned char*> self._view.buf
            self._cursor.end = self._cursor.at + self._view.len
            self.count = array(&self._cursor)
            self._require_end()
        else:
            self._lists = list(rows)
            self.count = len(self._lists)

    def __dealloc__(self):
        PyBuffer_Release(&self._view)

    cdef int next(self, Cell* cells, Py_ssize_t width) except -1:
        """Read the next row; its cells stay where they are as long as this does."""
        cdef Py_ssize_t size, place
        self._place += 1
        if self._lists is not None:
            return read_row(<list?> self._lists[self._place - 1], cells, width)
        require_width(array(&self._cursor), width)
        for place in range(width):
            size = cell(&self._cursor)
            cells[place].text = NULL
            cells[place].value = NULL
            if size >= 0:
                cells[place].text, cells[place].size = <const char*> self._cursor.at, size
                self._cursor.at += size
        self._require_end()
        return 0

    cdef int _require_end(self) except -1:
        if self._place == self.count and self._cursor.at != self._cursor.end:
            raise CorruptEvent("there is something behind the rows")
        return 0


cdef int read_row(list row, Cell* cells, Py_ssize_t width) except -1:
    """Read the cells of a list, which has to stay."""
    cdef Py_ssize_t place
    cdef PyObject* value
    require_width(len(row), width)
    for place in range(width):
        value = PyList_GET_ITEM(row, place)
        cells[place].value = value
        cells[place].text = NULL
        if <object> value is not None:
            if not PyBytes_Check(<object> value):
                raise TypeError("a value is bytes or None")
            cells[place].text, cells[place].size = PyBytes_AS_STRING(<object> value), PyBytes_GET_SIZE(<object> value)
    return 0


cdef int require_width(Py_ssize_t values, Py_ssize_t width) except -1:
    if values != width:
        raise ValueError("a row has another number of values than its table has columns")
    return 0


cdef bytes bytes_of(Cell* one):
    """Give the text as bytes, which have a zero byte behind them."""
    return <bytes> one.value if one.value != NULL else PyBytes_FromStringAndSize(one.text, one.size)


cdef bint is_same(Cell* one, object other) except -1:
    if one.text == NULL or other is None:
        return one.text == NULL and other is None
    return one.size == PyBytes_GET_SIZE(<bytes?> other) and memcmp(one.text, PyBytes_AS_STRING(other), one.size) == 0
