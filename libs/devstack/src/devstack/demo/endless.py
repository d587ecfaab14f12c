"""The load as a program: `python -m devstack.demo.endless HOST:PORT USER PASSWORD-FILE` writes until it is stopped."""

import argparse
import asyncio
import time
from pathlib import Path

from devstack.demo import shop
from devstack.demo.load import Load
from devstack.server import Server, at


async def run(server: Server, schema: str, pause: float) -> None:
    """Create the shop unless it exists, and commit transactions without end, with `pause` seconds between them."""
    if not await shop.exists(server, schema):
        await shop.create(server, schema)
    # Another seed each time, because e-mail addresses come from it and must be unique.
    await Load(server, time.time_ns(), schema, pause).run(0, asyncio.Event(), lambda: None)


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser("python -m devstack.demo.endless", description="Write to the shop until stopped.")
    parser.add_argument("address", help="HOST:PORT of the database")
    parser.add_argument("user", help="an account that may create the schema")
    parser.add_argument("password_file", type=Path, help="a file with its password")
    parser.add_argument("--schema", default=shop.SCHEMA, help="the schema of the shop (default: %(default)s)")
    parser.add_argument("--pause", type=float, default=0, metavar="SECONDS", help="seconds between two transactions")
    options = parser.parse_args()
    host, _, port = options.address.rpartition(":")
    server = at("mariadb", host, int(port), options.user, options.password_file.read_text().strip())
    asyncio.run(run(server, options.schema, options.pause))


if __name__ == "__main__":
    main()
