"""The publisher requests memory for batches from the kernel once, not for each batch."""

import platform
import subprocess
import sys

import pytest

from databus_publisher.batches import BATCH_BYTES

#: A program that prints the page faults of a hundred requests, each with several copies of a batch. It runs in its own
#: process, because malloc's settings cannot be undone.
_PROGRAM = f"""
import resource, sys
from databus_publisher.record_batch import keep_freed_memory
if sys.argv[1] == "kept":
    keep_freed_memory()
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(100):
        request = b"x" * {BATCH_BYTES}
        copies = [request + b"y" for _ in range(6)]
        del request, copies
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults()
print(faults())
"""


def faults(how: str) -> int:
    done = subprocess.run([sys.executable, "-c", _PROGRAM, how], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc's malloc is configured")
def test_the_memory_of_released_batches_is_reused() -> None:
    assert faults("kept") * 100 < faults("given back")
