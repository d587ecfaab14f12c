"""From the binlog to Kafka: the speed of our services, a baseline and the bare socket, and the latency of a commit.

Services, baseline and socket read the same log from the same server, alternately. The server and the reader of the bare
socket each run on one processor; services, baseline, Kafka and Redis may use all.
"""

import argparse
import asyncio
import secrets
import time
from dataclasses import dataclass

from baseline import Sending
from decode import run as read
from delivered import (
    baseline_images,
    consuming,
    debezium_images,
    maxwell_images,
    our_images,
    wait_until_committed,
)
from environment import Environment, cpu, create, environment, pipeline_of, verify
from latency import GOALS, latency
from readers import Run, run_script
from redis.asyncio import Redis
from report import Result, report
from rich.progress import track
from served import CLIENT_CPU, CONSOLE, Log, served
from workloads import WORKLOADS, Workload

from databus_core import names
from devstack import Server
from devstack.pipeline import Pipeline

#: what is compared: our services, the baseline in two variants, and the bare socket
WAYS = ("pipeline", "baseline", "baseline, by row", "drain")
#: goals: our speed divided by that of `baseline`, by workload
BASELINE_GOALS = {"W1m": 20, "W1s": 40, "W2": 50}
#: goal: our speed in percent of the bare socket's
DRAIN_GOAL = 12
#: formats with a message for each row; BY_ROW_GOALS replace their other goals
BY_ROW = {"debezium-json", "maxwell-json"}
#: goals: our speed divided by that of `baseline, by row`, by workload
BY_ROW_GOALS = {"W1m": 18, "W1s": 30, "W2": 35}
#: goals: µs CPU a row by process, and for the publisher by format, and by workload
CPU_GOALS = {
    "reader": {"W1m": 0.35, "W1s": 1.5, "W2": 1.2},
    "publisher, databus": {"W1m": 0.7, "W1s": 2.5, "W2": 1.6},
    "publisher, debezium-json": {"W1m": 1.5, "W1s": 5, "W2": 4.5},
    "publisher, maxwell-json": {"W1m": 1.3, "W1s": 4.5, "W2": 4},
}
#: for each format, the function that counts the row images of a message
IMAGES = {"databus": our_images, "debezium-json": debezium_images, "maxwell-json": maxwell_images}
#: `publisher.options` for each format
OPTIONS = {"debezium-json": {"schemas_enable": False}}
PROCESSES = ("reader", "publisher", "redis", "kafka", "mariadb")


@dataclass(frozen=True)
class Delivery:
    """The times from the reader's first stream entry with rows to the commit of the last change, in seconds."""

    #: wall-clock time
    wall: float
    #: CPU time of each process
    cpu: dict[str, float]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--scale", type=float, default=1, help="0.1 writes and reads a tenth, for a quick check")
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--format", choices=[*IMAGES], default="databus", help="format of the messages")
    options.add_argument("--only", choices=(*WORKLOADS, "latency"), help="run only this part")
    options.add_argument("--rate", type=int, choices=[*GOALS], nargs="+", default=[*GOALS], help="of latency, /s")
    chosen = options.parse_args()
    results = []
    with environment() as env:
        for name, workload in WORKLOADS.items():
            if chosen.only in (None, name):
                results += speed(name, workload, chosen.scale, chosen.runs, env, chosen.format)
        if chosen.only == "latency" or (chosen.only is None and chosen.format == "databus"):
            results += latency(env, chosen.runs, chosen.rate)
    report("pipeline" if chosen.format == "databus" else f"pipeline-{chosen.format}", results)


def speed(
    name: str, workload: Workload, scale: float, runs: int, env: Environment, message_format: str
) -> list[Result]:
    """Measure the WAYS alternately; return the speed of each, the CPU of each process, and how ours compares."""
    pace: dict[str, list[float]] = {way: [] for way in WAYS}  # rows/s
    cost: dict[str, list[float]] = {process: [] for process in PROCESSES}  # µs CPU a row
    with served(name, workload, "mariadb", scale) as (server, log, pid):
        env.pids["mariadb"] = pid
        deliver(server, log, env, message_format)  # warms up the page cache and Kafka's JVM
        for way in track([*WAYS] * runs, f"delivering {name}", console=CONSOLE):
            match way:
                case "pipeline":
                    delivery = deliver(server, log, env, message_format)
                    pace[way].append(log.rows / delivery.wall)
                    for process in PROCESSES:
                        cost[process].append(delivery.cpu[process] / log.rows * 1e6)
                case "drain":
                    pace[way].append(log.rows / read(way, server, log).wall)
                case _:
                    pace[way].append(log.rows / 10 / send(way, server, log, env).wall)
    ratios = {way: [ours / its for ours, its in zip(pace["pipeline"], pace[way], strict=True)] for way in WAYS[1:]}
    shares = [ratio * 100 for ratio in ratios["drain"]]
    by_row = message_format in BY_ROW
    baseline_goal = None if by_row else BASELINE_GOALS[name]
    by_row_goal, drain_goal = (BY_ROW_GOALS[name], None) if by_row else (None, DRAIN_GOAL)
    cpu_goals = {"reader": CPU_GOALS["reader"], "publisher": CPU_GOALS[f"publisher, {message_format}"]}
    return [
        *(Result(f"{name}: {way}", "rows/s", figures) for way, figures in pace.items()),
        *(
            Result(f"{name}: {process}", "µs CPU/row", figures, goal=cpu_goals.get(process, {}).get(name), at_most=True)
            for process, figures in cost.items()
        ),
        Result(f"{name}: wall clock", "times as fast", ratios["baseline"], "baseline", baseline_goal),
        Result(f"{name}: wall clock", "times as fast", ratios["baseline, by row"], "baseline, by row", by_row_goal),
        Result(f"{name}: wall clock", "% of its speed", shares, "drain", drain_goal),
    ]


def deliver(server: Server, log: Log, env: Environment, message_format: str) -> Delivery:
    """Let a new pipeline publish the server's log, and fail unless the topic has as many row images as the log."""
    publisher = {"format": message_format, "options": OPTIONS.get(message_format, {})}
    with pipeline_of(server, env, "earliest", publisher) as pipeline:
        pipeline.start_all("publisher")
        delivery = asyncio.run(_timed(pipeline, log, env))
    verify("the pipeline", env.kafka, f"{pipeline.name}.bench.t", IMAGES[message_format], log.images)
    return delivery


async def _timed(pipeline: Pipeline, log: Log, env: Environment) -> Delivery:
    """Start the reader; measure from its first entry with rows, when both services have started and connected."""
    topic, stream = names.progress_topic(pipeline.name), names.stream_key(pipeline.name)
    async with (
        consuming(env.kafka, topic) as progress,
        Redis.from_url(env.redis.url, socket_timeout=None) as redis,
    ):
        pipeline.spawn("reader")
        await redis.xread({stream: "1-0"}, block=30_000)  # 1-0 has the start position, 2-0 the first rows
        pids = env.pids | {service: pipeline.pid(service) for service in ("reader", "publisher")}
        before, begin = {name: cpu(pid) for name, pid in pids.items()}, time.perf_counter()
        await wait_until_committed(progress, log)
        wall = time.perf_counter() - begin
        return Delivery(wall, {name: cpu(pid) - before[name] for name, pid in pids.items()})


def send(way: str, server: Server, log: Log, env: Environment) -> Run:
    """Let the baseline send a tenth of the log, in a new process."""
    topic = f"baseline-{secrets.token_hex(4)}"
    create(env.kafka, topic)
    account = (server.host, server.port, server.user, server.password)
    task = Sending(way, *account, log.file, log.tenth, CLIENT_CPU, env.kafka.url, topic)
    result = run_script("baseline.py", task)
    verify(way, env.kafka, topic, baseline_images, log.images // 10)
    return result


if __name__ == "__main__":
    main()
