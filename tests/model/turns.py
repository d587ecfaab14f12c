"""Actors: coroutines that stop at every request to a server. Their owner decides which one continues, and how."""

from collections.abc import Callable, Coroutine, Generator
from enum import Enum
from types import coroutine
from typing import Any, TypeVar

from databus_core.errors import DatabusError

Answer = TypeVar("Answer")


class Fate(Enum):
    """What happens to a request."""

    #: the server executes the request, and the client gets the answer
    ANSWERED = "answered"
    #: the server never gets the request
    UNHEARD = "unheard"
    #: the server executes the request, and the answer is lost
    UNANSWERED = "unanswered"
    #: The server executes the request, and the answer is lost. The client retries, maybe much later, and gets the
    #: second answer. For a kind of request that is never retried, the same as ANSWERED.
    REPEATED = "repeated"


@coroutine
def turn() -> Generator[None, Fate, Fate]:
    """Wait for the actor's next turn; return the fate of the request that the actor makes in it."""
    return (yield)


async def request(effect: Callable[[], Answer], failure: Exception, *, repeats: bool = False) -> Answer:
    """Send a request to a server; return the answer, or raise `failure` if none arrives.

    repeats: the client may retry the request, and the server cannot detect that.
    """
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
    """A program that runs turn by turn until a DatabusError ends it."""

    def __init__(self, program: Coroutine[Any, Any, None]) -> None:
        self._program = program
        self.error: DatabusError | None = None
        program.send(None)

    def run(self, fate: Fate = Fate.ANSWERED) -> None:
        """Let the program send its next request."""
        if self.error is None:
            try:
                self._program.send(fate)
            except DatabusError as error:
                self.error = error

    def kill(self) -> None:
        """End the program as kill -9 does: it sends no more requests."""
        self._program.close()
