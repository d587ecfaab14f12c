"""The canonical text of floating-point numbers."""

def float_text(value: float, single: bool = False) -> bytes:
    """Return the canonical text of a DOUBLE, or of a FLOAT if `single`."""
