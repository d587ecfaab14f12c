"""Actors are coroutines that stop at every request to a server; whoever holds them decides who goes on, and how."""

from collections.abc import Callable, Coroutine, Generator
from enum import Enum
from types import coroutine
from typing import Any, TypeVar

from databus.errors import DatabusError

Answer = TypeVar("Answer")


class Fate(Enum):
    """What becomes of a request."""

    ANSWERED = "answered"
    #: the server never sees it
    UNHEARD = "unheard"
    #: the server does it, and nobody hears the answer
    UNANSWERED = "unanswered"
    #: the answer is lost; the client asks again, maybe much later, and goes by the second answer
    REPEATED = "repeated"


@coroutine
def turn() -> Generator[None, Fate, Fate]:
    """Wait for one's turn, and learn the fate of the request that is made in it."""
    return (yield)


async def request(effect: Callable[[], Answer], failure: Exception, *, repeats: bool = False) -> Answer:
    """Ask a server. `repeats`: its client asks again by itself, and the server cannot tell."""
    fate = await turn()
    if fate is Fate.UNHEARD:
        raise failure
    answer = effect()
    if fate is Fate.UNANSWERED:
        raise failure
    if fate is Fate.REPEATED and repeats:
        await turn()
        answer = effect()
    return answer


class Actor:
    """A program that runs turn by turn until an error of ours ends it."""

    def __init__(self, program: Coroutine[Any, Any, None]) -> None:
        self._program = program
        self.error: DatabusError | None = None
        program.send(None)

    def run(self, fate: Fate = Fate.ANSWERED) -> None:
        """Let it do its next request."""
        if self.error is None:
            try:
                self._program.send(fate)
            except DatabusError as error:
                self.error = error

    def kill(self) -> None:
        """End it as kill -9 does: it asks for nothing any more."""
        self._program.close()
