"""A Spark cluster, as processes on 127.0.0.1."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pyspark

from devstack.ports import HOST, free_ports
from devstack.process import Process, spawn

_SPARK = Path(pyspark.__file__).parent
#: begins a command that ends with this process
_BOUND = ["/usr/bin/setpriv", "--pdeathsig", "KILL"]
_ENVIRONMENT = ["/usr/bin/env", f"SPARK_HOME={_SPARK}", f"SPARK_LOCAL_IP={HOST}", "SPARK_DAEMON_MEMORY=256m"]


class SparkCluster:
    """A standalone master, and workers of one core each."""

    def __init__(self, folder: Path, workers: int) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        port, self._web, *webs = free_ports(2 + workers)
        self.url = f"spark://{HOST}:{port}"
        self._master = self._spawn("master.Master", "--host", HOST, "--port", str(port), "--webui-port", str(self._web))
        self._workers = [
            self._spawn("worker.Worker", "--cores", "1", "--memory", "1g", "--host", HOST,
                        "--work-dir", str(folder / f"worker-{web}"), "--webui-port", str(web), self.url)
            for web in webs
        ]  # fmt: skip

    async def is_ready(self) -> bool:
        """Return whether all workers have registered."""
        try:
            async with httpx.AsyncClient() as client:
                state = (await client.get(f"http://{HOST}:{self._web}/json/")).json()
        except httpx.TransportError:
            return False
        return bool(state["aliveworkers"] == len(self._workers))

    def executors(self) -> Iterator[Process]:
        """Find the executors that the workers have started."""
        workers = {worker.pid for worker in self._workers}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                parent = int(stat.read_text().rpartition(")")[2].split()[1])
                is_executor = b"CoarseGrainedExecutorBackend" in stat.with_name("cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError):  # it has just ended
                continue
            if is_executor and parent in workers:
                yield Process.of(int(stat.parent.name))

    def kill(self) -> None:
        """Kill all processes; executors end with their worker."""
        for process in (*self._workers, *self.executors(), self._master):
            process.kill()

    def _spawn(self, program: str, *arguments: str) -> Process:
        command = [
            *_BOUND,
            *_ENVIRONMENT,
            str(_SPARK / "bin/spark-class"),
            f"org.apache.spark.deploy.{program}",
            *arguments,
        ]
        return spawn(command, self.folder / "daemons.log")


def command_lines() -> list[bytes]:
    """Read the command lines of all processes of the machine."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            found.append(path.read_bytes())
    return found
