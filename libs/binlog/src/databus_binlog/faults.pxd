"""The outcomes of decoding a value. Functions on the hot path return them instead of raising exceptions."""

cdef enum Fault:
    NONE = 0
    NO_MEMORY
    TRUNCATED
    BAD_JSON
    BAD_TEXT
    BAD_COMPRESSION
    BAD_DIFF
    NO_BEFORE_IMAGE
    NO_COLUMNS
    TOO_LARGE
    RAISED  # a Python exception is set


cdef inline int check(Fault fault) except -1:
    """Raise MemoryError for NO_MEMORY. The caller handles every other fault, because it knows table and column."""
    if fault == Fault.NO_MEMORY:
        raise MemoryError
    return 0
