"""Feed the decoder damaged binlogs: it must not crash, hang, lose an event silently or take too much memory.

A case is derived from its number only: `PYTHONPATH=tests python tests/fuzz/decoder.py --only N` repeats it.
"""

import argparse
import random
import resource
import subprocess
import sys
import time

from rich.progress import Progress, TextColumn, TimeElapsedColumn

from fuzz import damage

BATCH = 2000
#: limit for the growth of a process: an input has at most 20 KB, which deflate can expand to 20 MB; with zstd, at most
#: 16 MiB are decompressed at a time
MEMORY_MIB = 96
#: time after which a batch counts as hanging
HANG_SECONDS = 60


def run(first: int, count: int) -> None:
    """Run cases; end the process with a message at the first that fails."""
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(first, first + count):
        rng = random.Random(number)
        data = damage.file(rng)
        try:
            damage.decode(rng, data)
        except BaseException as error:
            raise SystemExit(f"case {number}: {type(error).__name__}: {error}") from error
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base) / 1024
        if grown > MEMORY_MIB:
            raise SystemExit(f"case {number}: memory grew by {grown:.0f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=120, help="how long to run (120)")
    parser.add_argument("--first", type=int, default=0, help="number of the first case (0)")
    parser.add_argument("--only", type=int, help="run this one case")
    parser.add_argument("--batch", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only is not None or options.batch is not None:
        run(*((options.batch, BATCH) if options.only is None else (options.only, 1)))
        return
    end, first = time.monotonic() + options.seconds, options.first
    with Progress(TextColumn("{task.completed} damaged binlogs decoded"), TimeElapsedColumn()) as progress:
        cases = progress.add_task("", total=None)
        while time.monotonic() < end:
            run_batch(first)
            first += BATCH
            progress.advance(cases, BATCH)


def run_batch(first: int) -> None:
    """Run a batch in a process of its own, so that a crash or a hang of the decoder is reported."""
    batch = f"cases {first} to {first + BATCH - 1}"
    try:
        subprocess.run([sys.executable, __file__, "--batch", str(first)], check=True, timeout=HANG_SECONDS)
    except subprocess.TimeoutExpired as hang:
        raise SystemExit(f"{batch} did not end within {HANG_SECONDS} s: one of them hangs") from hang
    except subprocess.CalledProcessError as failure:
        raise SystemExit(f"{batch}: the process ended with status {failure.returncode}") from failure


if __name__ == "__main__":
    main()
