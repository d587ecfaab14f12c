"""The canonical text of floating-point numbers, for callers in Python."""


def float_text(double value, bint single=False):
    """Return the canonical text of a DOUBLE, or of a FLOAT if `single`, as bytes."""
    cdef char[64] text
    return text[:put_float(text, value, single) - text]
