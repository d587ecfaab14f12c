"""What malloc does with the memory of batches that are gone."""

import ctypes
from contextlib import suppress

#: options of glibc's mallopt(3), and the most it takes for the second: a request is copied several times as a whole
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT = 32 * 2**20


def keep_freed() -> None:
    """Let malloc keep up to 32 MiB that are free.

    It gives the memory of each batch back to the kernel otherwise and takes it anew for the next one, page by page.
    Where libc is not glibc, nothing is done.
    """
    with suppress(AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, _KEPT)
        mallopt(_TRIM_THRESHOLD, _KEPT)
