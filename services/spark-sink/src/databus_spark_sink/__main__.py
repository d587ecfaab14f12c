"""The program `databus-spark-sink`."""

import argparse
import asyncio
import sys

from databus.errors import DatabusError
from databus.runtime import main as run_service
from databus.settings import add_config, load
from databus_spark_sink.service import check, run, run_until_idle
from databus_spark_sink.verify import verify


def main() -> None:
    """Run the sink, or its command `verify`."""
    if sys.argv[1:2] == ["verify"]:
        sys.exit(_verify(sys.argv[2:]))
    run_service(
        "spark-sink",
        listen=lambda settings: settings.spark.listen,
        run=run,
        until_idle=run_until_idle,
        check=check,
    )


def _verify(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="databus-spark-sink verify",
        description="Compare mirrors with their tables in the database, as of one transaction. A new dump of the "
        "tables is taken, and the sink goes on meanwhile. Exit code 1: at least one mirror differs.",
    )
    add_config(parser)
    parser.add_argument("tables", nargs="*", metavar="SCHEMA.TABLE", help="tables or patterns of tables (default: all)")
    chosen = parser.parse_args(arguments)
    try:
        settings = load(chosen.config)
        return 0 if asyncio.run(verify(settings, chosen.tables or settings.spark.tables)) else 1
    except DatabusError as error:
        sys.stderr.write(f"databus-spark-sink verify: {error}\n")
        return error.exit_code


if __name__ == "__main__":
    main()
