"""Find, install and run the programs that set servers up (apt-get, mvn, …), and report a failure in one line."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from devstack.server import DevstackError, Say

_ERROR_LINE = re.compile(r"error|^E:|fail|cannot|unable|denied", re.IGNORECASE)


def run(
    what: str, command: Sequence[str], *, stdin: str = "", env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> str:
    """Run a command and return its output, with standard error.

    Raises DevstackError, whose message starts with `what`, if the exit status is not 0.
    """
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
        line = next((text for text in lines if _ERROR_LINE.search(text)), lines[-1] if lines else "no output")
        raise DevstackError(f"{what} failed (exit {done.returncode}): {line}")
    return done.stdout


def require(program: str, package: str, missing: str, say: Say) -> str:
    """Return a program's path; as root on Debian, install its package if necessary.

    Raises DevstackError if the installation fails, or with the text `missing` if there is no such program.
    """
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
