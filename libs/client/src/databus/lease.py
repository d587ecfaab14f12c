"""The lease of the dump that a program loads."""

from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from databus.source import Source


class Lease:
    """A lease that is held, across interruptions of dump-api, until it is released or the block ends."""

    def __init__(self) -> None:
        self._held = AsyncExitStack()
        self._dump = ""

    async def take(self, source: Source, dump: str) -> None:
        """Take a lease of a dump, unless it is held already. Raises DumpUnusable if the dump was deleted."""
        if dump != self._dump:
            await self.release()
            await self._held.enter_async_context(source.api.leased(dump))
            self._dump = dump

    async def release(self) -> None:
        """Release the lease, if one is held."""
        self._dump = ""
        await self._held.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.release()
