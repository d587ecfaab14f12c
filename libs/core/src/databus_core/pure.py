"""Whether the fast path in compiled code is switched off: the Python beside it is its specification."""

import os


def is_pure() -> bool:
    """Return whether DATABUS_PURE=1 is in the environment: then each event is a Python object on its way."""
    return os.environ.get("DATABUS_PURE", "") not in {"", "0"}
