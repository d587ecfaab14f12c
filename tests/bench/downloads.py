"""Download one file 200 times at once from dump-api: memory, stalls of its event loop, speed."""

import argparse
import asyncio
import multiprocessing
import time
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import uvicorn
from report import Result, report
from served import CLIENT_CPU, CONSOLE, SERVER_CPU, pin

from databus_core.manifest import DumpFile, Manifest, State
from databus_core.runtime import Health
from databus_core.settings import Settings
from databus_dump_api.__main__ import Service
from devstack import Stack
from devstack.ports import HOST, free_ports

_DUMP, _FILE = "20261127T000000Z-0000", "shop.t.00001.jsonl.zst"
_TICK = 0.005


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--clients", type=int, default=200)
    options.add_argument("--size", type=int, default=2**30, help="bytes of the file")
    options.add_argument("--seconds", type=float, default=60, help="clients that have not finished then give up")
    chosen = options.parse_args()
    stack = Stack(Path(".devstack/bench/downloads"), own=True)
    redis = stack.start("redis")
    try:
        with TemporaryDirectory() as folder:
            write_dump(Path(folder), chosen.size)
            settings = {"name": "shop", "redis": {"url": redis.url}, "dumps": {"storage": f"file://{folder}"}}
            results = measure(settings, chosen.clients, chosen.seconds)
    finally:
        stack.stop("redis")
    report("downloads", results)


def write_dump(root: Path, size: int) -> None:
    """Write a complete dump with a file of this size, which takes no space."""
    (root / _DUMP).mkdir()
    file = DumpFile(name=_FILE, table="shop.t", rows=1, bytes=size, sha256="0" * 64)
    manifest = Manifest(id=_DUMP, pipeline="shop", state=State.COMPLETE, created=datetime.now(UTC), files=(file,))
    (root / _DUMP / "manifest.json").write_bytes(msgspec.json.encode(manifest))
    with (root / _DUMP / _FILE).open("wb") as content:
        content.truncate(size)


def measure(settings: dict[str, Any], clients: int, seconds: float) -> list[Result]:
    """Run server and clients in processes of their own."""
    spawn = multiprocessing.get_context("spawn")
    measured, (port,) = spawn.SimpleQueue(), free_ports(1)
    stop = spawn.Event()
    server = spawn.Process(target=serve, args=(settings, port, stop, measured))
    server.start()
    pin(server.pid or 0)
    idle = measured.get()
    began = time.monotonic()
    downloading = spawn.Process(target=download, args=(port, clients, seconds, measured))
    downloading.start()
    size = measured.get()
    took = time.monotonic() - began
    stop.set()
    stalls, busy, peak = measured.get()
    server.join()
    downloading.join()
    CONSOLE.print(f"{clients} clients; server on processor {SERVER_CPU}, clients on {CLIENT_CPU}")
    return [
        Result("memory before the downloads", "MB", [idle / 1e6]),
        Result("memory, peak", "MB", [peak / 1e6], goal=200, at_most=True),
        Result("longest stall of the event loop", "ms", [stalls[-1] * 1000], goal=100, at_most=True),
        Result("of its thread's CPU between two turns, at most", "ms", [busy * 1000], goal=100, at_most=True),
        Result("stall of the event loop, 99.9 %", "ms", [stalls[int(len(stalls) * 0.999)] * 1000]),
        Result("speed", "MB/s", [size / took / 1e6]),
    ]


def serve(settings: dict[str, Any], port: int, stop: Any, measured: Any) -> None:
    asyncio.run(_serve(settings, port, stop, measured))


async def _serve(settings: dict[str, Any], port: int, stop: Any, measured: Any) -> None:
    app = Service().app(Settings.model_validate(settings), Health())
    server = uvicorn.Server(uvicorn.Config(app, host=HOST, port=port, lifespan="off", log_config=None))
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(_TICK)
    measured.put(_memory("VmRSS"))
    stalls, busy = [], []
    while not stop.is_set():
        asleep, used = time.monotonic(), time.thread_time()
        await asyncio.sleep(_TICK)
        stalls.append(time.monotonic() - asleep - _TICK)
        busy.append(time.thread_time() - used)
    measured.put((sorted(stalls), max(busy), _memory("VmHWM")))
    server.should_exit = server.force_exit = True
    await serving


def _memory(kind: str) -> int:
    """Return the resident bytes of this process: VmRSS now, VmHWM at most."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(kind))
    return int(line.split()[1]) * 1024


def download(port: int, clients: int, seconds: float, measured: Any) -> None:
    measured.put(asyncio.run(_download(port, clients, seconds)))


async def _download(port: int, clients: int, seconds: float) -> int:
    """Download the file as often as there are clients, at once; return the number of bytes that came."""
    return sum(await asyncio.gather(*(_one(port, seconds) for _ in range(clients))))


async def _one(port: int, seconds: float) -> int:
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(f"GET /v1/dumps/{_DUMP}/files/{_FILE} HTTP/1.1\r\nHost: d\r\nConnection: close\r\n\r\n".encode())
    size = 0
    try:
        async with asyncio.timeout(seconds):
            status = await reader.readline()
            assert b" 200 " in status, status
            while chunk := await reader.read(2**18):
                size += len(chunk)
    except TimeoutError:
        pass
    writer.close()
    return size


if __name__ == "__main__":
    main()
