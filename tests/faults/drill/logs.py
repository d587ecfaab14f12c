"""The lines that the services log while a fault lasts."""

import asyncio
import json
import re
import socket
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from faults.drill.replicas import Replica
from faults.drill.rig import Rig

_LEVELS = ("warning", "error", "critical")
_DATE = re.compile(r"20\d\d(-?)[01]\d\1[0-3]\d(?=[T ]\d)")


class Line(NamedTuple):
    """A line of a log of level warning or above."""

    replica: str
    event: str
    text: str


class Logs:
    """The logs of all replicas, from a moment on."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self.begin()

    def begin(self) -> None:
        """Note that the fault begins now."""
        self._began = datetime.now().astimezone()
        self._offsets = {replica: _size(self._path(replica)) for replica in self._rig.replicas.all}

    def new_lines(self) -> list[Line]:
        """Return the lines of level warning or above that were not returned before, in their order."""
        found = []
        for replica, offset in self._offsets.items():
            with self._path(replica).open("rb") as file:
                file.seek(offset)
                text = file.read()
            complete = text[: text.rfind(b"\n") + 1]
            self._offsets[replica] += len(complete)
            found += [(replica, json.loads(line)) for line in complete.splitlines()]
        found.sort(key=lambda each: each[1]["time"])
        return [
            Line(str(replica), line["event"], self.plain(line["message"]))
            for replica, line in found
            if line["level"] in _LEVELS
        ]

    async def until_logged(self, event: str, *replicas: Replica) -> float:
        """Wait until one of the replicas logs an event after the fault; return the seconds from the fault to it."""
        while True:
            for replica in replicas:
                for text in self._path(replica).read_text().splitlines():
                    line = json.loads(text)
                    at = datetime.fromisoformat(line["time"])
                    if line["event"] == event and at > self._began:
                        return (at - self._began).total_seconds()
            await asyncio.sleep(0.2)

    def plain(self, text: str) -> str:
        """Replace addresses, paths and the date of this run by those of an example."""
        rig = self._rig
        names = {rig.source.port: "db1:3306", rig.redis.port: "redis1:6379", rig.kafka_proxy.port: "kafka1:9092"}
        for port, name in names.items():
            text = text.replace(f"127.0.0.1:{port}", name)
        text = text.replace(str(rig.storage), "/dumps").replace(str(rig.pipeline.home), "/etc/databus")
        return _DATE.sub(r"2026\g<1>01\g<1>01", text.replace(f"{socket.gethostname()}:", "pod:"))

    def _path(self, replica: Replica) -> Path:
        return self._rig.pipeline.log(*replica)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
