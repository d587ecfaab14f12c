"""Whether services use only Python where they have a compiled path as well, to compare the two or to rule one out."""

import os

PURE_VARIABLE = "DATABUS_PURE"


def is_pure() -> bool:
    """Return whether the environment switches the compiled paths off, with DATABUS_PURE=1."""
    return os.environ.get(PURE_VARIABLE) == "1"
