"""`make faults-lake`: changes rows and tables at random while services are killed, and compares the lake each round.

A table is loaded again in each round. In each second one, beginning with the first, the database fails over; in the
others the pipeline is reset, with changes that are never published, or with a snapshot.
The same seed draws the same statements; what they meet differs if several connections write.
"""

import argparse
import asyncio
import logging
import shutil
import sys
import time
from pathlib import Path
from random import Random

from rich.console import Console

from cluster.servers import SparkCluster
from devstack import Stack
from devstack.demo.scenario import connectors
from devstack.replication import Pair
from faults.lake_load import Report
from faults.lake_reader import LakeReader
from faults.lake_storm import LakeStorm

_HOME = Path(".devstack/faults-lake")


async def _run(options: argparse.Namespace, console: Console) -> Report:
    home = _HOME / f"{options.server}-{options.partitions}-{options.table_format}{'-cluster' * options.cluster}"
    pair, stack = Pair(home / "pair", options.server), Stack(home / "servers", own=True)
    await asyncio.gather(pair.discard(), asyncio.to_thread(stack.discard))  # servers that a killed run has left
    shutil.rmtree(home, ignore_errors=True)
    begin = time.monotonic()
    cluster = SparkCluster(home.resolve() / "cluster", workers=2) if options.cluster else None

    def say(text: str) -> None:
        console.print(f"[dim]\\[{time.monotonic() - begin:5.0f} s][/] {text}", highlight=False, soft_wrap=True)

    try:
        redis, kafka, _ = await asyncio.gather(
            asyncio.to_thread(stack.start, "redis"), asyncio.to_thread(stack.start, "kafka"), pair.start()
        )
        pipeline = home.resolve() / "pipeline"
        reader = LakeReader(pipeline / "lake", connectors(), options.table_format)
        storm = LakeStorm(pipeline, (pair, redis, kafka), reader, options.seed, options.partitions, cluster)
        await storm.prepare()
        say("the sink has loaded a dump")
        try:
            for number in range(1, options.rounds + 1):
                fail_over, reset_to = number % 2 == 1, {2: "latest", 0: "snapshot"}.get(number % 4, "")
                await storm.round(options.transactions, options.statements, fail_over=fail_over, reset_to=reset_to)
                report = storm.report
                say(
                    f"round {number}: {report.transactions} transactions, {report.ddl.total()} statements on tables, "
                    f"{dict(report.faults)}, {report.tables} comparisons, {report.rows} rows"
                )
                if report.failures:
                    break
            if options.table_format == "iceberg" and not storm.report.faults["replay"]:
                storm.report.failures.append("no table was replayed")
        finally:
            await storm.close()
        return storm.report
    finally:
        if cluster:
            cluster.kill()
        await asyncio.gather(pair.discard(), asyncio.to_thread(stack.discard))


def show(report: Report, console: Console) -> None:
    """Print the report."""
    for title, counter in (("statements", report.ddl), ("refused", report.refused), ("faults", report.faults)):
        texts = ", ".join(f"{number} {what}" for what, number in counter.most_common())
        console.print(f"{title}: {texts}", highlight=False, soft_wrap=True)
    for failure in report.failures:
        console.print(f"[red]FAILED[/]: {failure}", soft_wrap=True)
    if not report.failures:
        console.print("[green]all mirrors equal their tables[/]")


def main() -> int:
    """Run the command line and return the exit code."""
    parser = argparse.ArgumentParser(prog="make faults-lake", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="how many (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="draw the statements of this seed (default: a new one)")
    parser.add_argument("--server", choices=["mariadb", "mysql"], default="mariadb")
    parser.add_argument("--partitions", type=int, default=1, help="partitions of each topic (default: %(default)s)")
    parser.add_argument("--table-format", choices=["delta", "iceberg"], default="delta", help="of the lake")
    parser.add_argument("--cluster", action="store_true", help="run the sink on a Spark master with two workers")
    parser.add_argument("--transactions", type=int, default=300, help="a round (default: %(default)s)")
    parser.add_argument("--statements", type=int, default=20, help="on tables, a round (default: %(default)s)")
    options = parser.parse_args()
    options.seed = Random().randrange(10**6) if options.seed is None else options.seed
    for noisy in ("aiokafka", "asyncmy"):
        logging.getLogger(noisy).setLevel(logging.CRITICAL)
    console = Console()
    console.print(
        f"{options.rounds} rounds on {options.server}, {options.partitions} partitions, {options.table_format}, "
        f"seed {options.seed}",
        highlight=False,
    )
    try:
        report = asyncio.run(_run(options, console))
    except KeyboardInterrupt:
        return 130
    show(report, console)
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
