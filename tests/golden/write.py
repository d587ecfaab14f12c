"""`make golden`: writes the binlogs with new servers, then the golden files of all formats and the guide's examples."""

import argparse
import asyncio
import shutil
from itertools import product
from pathlib import Path

from common.connections import printing
from devstack import Kind, Stack
from golden.binlogs import write
from golden.cases import CASES, FOLDER, KINDS, path, records
from golden.guide import GUIDE, with_examples


async def log(kind: Kind, stack: Stack) -> None:
    """Run the statements on a new server so that one binlog file has nothing else, and copy that file."""
    async with printing(stack.start(kind)) as run:
        await run("FLUSH BINARY LOGS")
        await write(kind, run, same_gtids=True)
        [*_, [name, *_]] = await run("SHOW BINARY LOGS")
        [[base]] = await run("SELECT @@log_bin_basename")
        await run("FLUSH BINARY LOGS")
        assert name and base
        shutil.copyfile(Path(base.decode()).with_name(name.decode()), FOLDER / f"{kind}.bin")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "--keep", action="store_true", help="keep the binlogs, only write the golden files and the examples"
    )
    if not options.parse_args().keep:
        write_logs()
    for kind, case in product(KINDS, CASES):
        path(kind, case).parent.mkdir(exist_ok=True)
        path(kind, case).write_bytes(records(kind, case))
    GUIDE.write_text(with_examples(GUIDE.read_text()))


def write_logs() -> None:
    home = Path(".devstack/golden")
    shutil.rmtree(home, ignore_errors=True)
    stack = Stack(home, own=True)
    for kind in KINDS:
        try:
            asyncio.run(log(kind, stack))
        finally:
            stack.stop(kind)


if __name__ == "__main__":
    main()
