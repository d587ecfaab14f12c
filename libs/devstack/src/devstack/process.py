"""Detached processes that outlive this one; pid and start time identify them, so that no other process is ended."""

import json
import os
import signal
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple, Self

from devstack.server import DevstackError

#: The environment of every process that is started here. It must not depend on the environment of this process.
ENVIRONMENT = {
    "PATH": os.defpath,
    "LANG": "C.UTF-8",
    # Java's second compiler costs more CPU than it saves in processes that live for minutes. Without it, Java reserves
    # only 48 MB for compiled code; Spark fills them within a minute, and then Java compiles nothing more.
    "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m",
}


@dataclass(frozen=True)
class Process:
    """A process that this run or an earlier one has started."""

    pid: int
    #: when it started, in clock ticks since boot; another process that later gets the same pid has another start time
    started: int

    @classmethod
    def of(cls, pid: int) -> Self:
        """Return the process that has this pid now."""
        stat = _stat(pid)
        if not stat:
            raise DevstackError(f"there is no process {pid}")
        return cls(pid, stat.started)

    @classmethod
    def load(cls, path: Path) -> Self | None:
        """Read what `save` wrote; None if there is no file."""
        return cls(**json.loads(path.read_text())) if path.exists() else None

    def save(self, path: Path) -> None:
        """Write pid and start time for later runs."""
        path.write_text(json.dumps(asdict(self)))

    @property
    def alive(self) -> bool:
        """Whether this process, and not another one with its pid, still runs."""
        stat = _stat(self.pid)
        if not stat or stat.started != self.started:
            return False
        if stat.state != "Z" or stat.threads > 1:  # a zombie's threads may still hold its ports
            return True
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)  # a child stays a zombie until it is waited for
        return False

    def end(self, grace: float) -> None:
        """Send SIGTERM, then SIGKILL if the process still runs after `grace` seconds."""
        if not self._signal(signal.SIGTERM, grace):
            self.kill()

    def kill(self) -> None:
        """Send SIGKILL and wait until the process has ended."""
        if not self._signal(signal.SIGKILL, 30):
            raise DevstackError(f"process {self.pid} still runs after SIGKILL")

    def _signal(self, number: signal.Signals, wait: float) -> bool:
        until = time.monotonic() + wait
        if self.alive:
            os.kill(self.pid, number)
        while self.alive:
            if time.monotonic() > until:
                return False
            time.sleep(0.02)
        return True


class _Stat(NamedTuple):
    state: str
    threads: int
    started: int


def _stat(pid: int) -> _Stat | None:
    """Read a process's entry in /proc; None if there is no such process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()  # from field 3 on, see proc(5)
    except (FileNotFoundError, ProcessLookupError):
        return None
    return _Stat(state=fields[0], threads=int(fields[17]), started=int(fields[19]))


def spawn(command: list[str], log: Path) -> Process:
    """Start a command in its own session, with its output appended to the log."""
    append = (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    pid = os.posix_spawn(
        command[0],
        command,
        ENVIRONMENT,
        setsid=True,
        file_actions=[(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), append, (os.POSIX_SPAWN_DUP2, 1, 2)],
    )
    return Process.of(pid)


def tail(log: Path, lines: int = 12) -> str:
    """Return the last lines of a log."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:]) if log.exists() else ""
