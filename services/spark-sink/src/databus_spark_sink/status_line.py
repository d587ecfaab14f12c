"""What a command that waits shows on standard error."""

import shutil
import sys
from types import TracebackType
from typing import Self


class StatusLine:
    """The states of several things: in one line that is replaced on a terminal, elsewhere in a line for each change."""

    def __init__(self) -> None:
        self._states: dict[str, str] = {}
        self._is_terminal = sys.stderr.isatty()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._replace("")

    def show(self, name: str, state: str) -> None:
        """Show the state of a thing, if it has changed."""
        if self._states.get(name) == state:
            return
        self._states[name] = state
        if not self._is_terminal:
            sys.stderr.write(f"{name}: {state}\n")
        self._replace("; ".join(f"{name}: {state}" for name, state in self._states.items()))

    def _replace(self, text: str) -> None:
        if self._is_terminal:
            columns = shutil.get_terminal_size().columns
            sys.stderr.write(f"\r\x1b[K{text[: columns - 1]}")
            sys.stderr.flush()
