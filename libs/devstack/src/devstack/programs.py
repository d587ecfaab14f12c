"""Programs that run to their end: found or installed, run quietly, and explained in one line when they fail."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from devstack.server import DevstackError, Say

_TELLING = re.compile(r"error|^E:|fail|cannot|unable|denied", re.IGNORECASE)


def run(
    what: str, command: Sequence[str], *, stdin: str = "", env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> str:
    """Run a command to its end and return its output; `what` opens the message when it fails."""
    done = subprocess.run(
        command,
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, **(env or {})},
        cwd=cwd,
        check=False,
    )
    if done.returncode:
        lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
        telling = next((line for line in lines if _TELLING.search(line)), lines[-1] if lines else "no output")
        raise DevstackError(f"{what} failed (exit {done.returncode}): {telling}")
    return done.stdout


def require(program: str, package: str, missing: str, say: Say) -> str:
    """Find a program; as root on Debian install its package when it is missing, else fail with the line `missing`."""
    found = shutil.which(program)
    if not found and os.geteuid() == 0 and shutil.which("apt-get"):
        say(f"installing {package}")
        quiet = {"DEBIAN_FRONTEND": "noninteractive"}
        run("apt-get update", ["apt-get", "-q", "update"], env=quiet)
        install = ["apt-get", "-qy", "-o", "DPkg::Lock::Timeout=300", "install", "--no-install-recommends", package]
        run(f"apt-get install {package}", install, env=quiet)
        found = shutil.which(program)
    if not found:
        raise DevstackError(missing)
    return found
