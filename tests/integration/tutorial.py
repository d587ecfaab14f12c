"""Runs the commands of a tutorial in a shell, one block after the other, and compares what they print with the page."""

import asyncio
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple

_TUTORIALS = Path(__file__).parents[2] / "docs/tutorial"
_BLOCK = re.compile(r"(?:Save this as `([\w.]+)`:\n\n)?```(\w+)\n(.*?)```", re.DOTALL)
#: what differs each time: times, positions in the binlog, ids of dumps and backfills, sizes except 0
_VOLATILE = re.compile(
    r"\d{4}-\d\d-\d\d[ T][\d:.]+(?:Z|\+00:00)?|[\w-]+\.\d{6}:\d+|\d{8}T\d{6}Z-\w+|\d+ bytes|bytes +[1-9]\d*"
)
#: a service is still starting; whether that is seen depends on the machine
_RETRYING = re.compile(r"^.*; retrying\n", re.MULTILINE)
_MARK = "--- end of the block: "


class Step(NamedTuple):
    """A block of commands, and the block of text after it, if there is one; or a file that is to be saved."""

    code: str
    shown: str | None = None
    file: str = ""


def steps(page: str, *, until: str = "") -> list[Step]:
    """Return the steps of a page in docs/tutorial, up to the heading `until`."""
    text = (_TUTORIALS / f"{page}.md").read_text()
    found = _BLOCK.findall(text[: text.index(f"\n## {until}")] if until else text)
    return [
        Step(code, after[2] if after[1] == "text" else None, file)
        for (file, language, code), after in zip(found, [*found[1:], ("", "", "")], strict=True)
        if language != "text"
    ]


def assert_shown(printed: str, shown: str) -> None:
    """Compare an output with that of the page, in which `…` stands for any text."""
    pattern = ".*?".join(map(re.escape, _VOLATILE.sub("~", shown).split("…")))
    if not re.fullmatch(pattern, _VOLATILE.sub("~", _RETRYING.sub("", printed)), re.DOTALL):
        assert printed == shown


class Terminal:
    """A shell that keeps its folder, variables and background jobs from one block to the next.

    `names` has what the page calls something, and what the test calls it.
    """

    def __init__(self, shell: Process, folder: Path, names: Mapping[str, str]) -> None:
        self._shell = shell
        self.folder = folder
        self._names = names

    async def run(self, code: str) -> tuple[int, str]:
        """Run commands. Return the last exit code that is not 0, if any, and what they print, with the page's names."""
        assert self._shell.stdin and self._shell.stdout
        for name, ours in self._names.items():
            code = code.replace(name, ours)
        block = self.folder / "block.sh"
        block.write_text(code)
        self._shell.stdin.write(f"failed=0; . {block} </dev/null; echo '{_MARK}'$failed\n".encode())
        lines: list[str] = []
        try:
            async with asyncio.timeout(240):
                while not (line := (await self._shell.stdout.readline()).decode()).startswith(_MARK):
                    assert line, f"the shell ended: {lines}"
                    lines.append(line)
        except TimeoutError as error:
            raise AssertionError(f"{code}has not ended, after it printed {lines}") from error
        printed = "".join(lines)
        for name, ours in self._names.items():
            printed = printed.replace(ours, name)
        return int(line.removeprefix(_MARK)), printed

    async def follow(self, page: Iterable[Step]) -> None:
        """Take steps of a page: all commands succeed, unless it shows something wrong, and print what it shows."""
        for step in page:
            if step.file:
                (self.folder / step.file).write_text(step.code)
                continue
            code, printed = await self.run(step.code)
            wrong = re.search(r" [1-9]\d* wrong$", step.shown or "")
            assert code == (1 if wrong else 0), f"{step.code}{printed}"
            if step.shown is not None:
                assert_shown(printed, step.shown)


@asynccontextmanager
async def terminal(
    folder: Path, names: Mapping[str, str], programs: Mapping[str, str], variables: Mapping[str, str]
) -> AsyncIterator[Terminal]:
    """Open a shell in a new folder, whose jobs end with it.

    `programs` are scripts in Python by name, which stand in for programs that the machine may not have.
    """
    own, installed = folder / "programs", Path(sys.executable).parent
    own.mkdir()
    for name, text in programs.items():
        (own / name).write_text(f"#!{sys.executable}\n{text}")
        (own / name).chmod(0o755)
    home = folder / "first"
    home.mkdir()
    shell = await asyncio.create_subprocess_exec(
        *("bash", "--noprofile", "--norc"),
        cwd=home,
        env={"PATH": f"{own}:{installed}:{os.defpath}", "HOME": str(folder), **variables},
        stdin=PIPE,
        stdout=PIPE,
        stderr=STDOUT,
        start_new_session=True,
    )
    assert shell.stdin
    shell.stdin.write(b"trap 'failed=$?' ERR\n")
    try:
        yield Terminal(shell, home, names)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)
        await shell.communicate()
