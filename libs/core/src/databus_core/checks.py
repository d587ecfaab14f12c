"""Checks of dependencies, for `--check` of the services and for `databus check`. All are made, whatever they find."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

from databus_core.errors import DatabusError, FatalError, RetryableError
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger

log = get_logger(__name__)
_T = TypeVar("_T")
_T_contra = TypeVar("_T_contra", contravariant=True)


class Verdict(StrEnum):
    """What is to do after a check."""

    OK = "ok"
    #: it works now; an operator should look at it
    WARNING = "warning"
    #: a service would fail
    WRONG = "wrong"


class Warned(DatabusError):
    """What was checked works now, but an operator should look at it."""


@dataclass(frozen=True)
class Check(Generic[_T_contra]):
    """One thing to check with a connection."""

    #: its name, a few words; for a setting of the dependency, the setting
    what: str
    #: Makes the check. Returns what it found, a few words. Raises Warned, or the error that a service would have.
    make: Callable[[_T_contra], Awaitable[str]]


@dataclass(frozen=True)
class Result:
    """What a check found."""

    #: the dependency, such as `database db1:3306`
    where: str
    what: str
    found: str = ""
    error: DatabusError | None = None

    @property
    def verdict(self) -> Verdict:
        """What is to do."""
        if self.error is None:
            return Verdict.OK
        return Verdict.WARNING if isinstance(self.error, Warned) else Verdict.WRONG

    @property
    def lines(self) -> list[str]:
        """What is wrong and what to do, one line for each fault; what was found, if nothing is wrong."""
        return (str(self.error) if self.error else self.found).splitlines()


async def results(
    where: str,
    connection: AbstractAsyncContextManager[_T],
    checks: Sequence[Check[_T]],
    errors: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> list[Result]:
    """Connect, and make all checks. `errors` turns errors of the client inside its block into ours."""
    found: list[Result] = []
    try:
        async with connection as connected:
            for check in checks:
                found.append(await _result(where, check, connected, errors))
    except DatabusError as error:
        found.append(Result(where, "connection", error=error))
    return found


async def _result(
    where: str, check: Check[_T], connected: _T, errors: Callable[[], AbstractContextManager[Any]]
) -> Result:
    try:
        with errors():
            return Result(where, check.what, await check.make(connected))
    except DatabusError as error:
        return Result(where, check.what, error=error)


def require(found: Iterable[Result]) -> None:
    """Log the warnings, and raise one error with the lines of all that is wrong."""
    errors: list[DatabusError] = []
    for result in found:
        if result.error and result.verdict is Verdict.WRONG:
            errors.append(result.error)
        elif result.error:
            for line in result.lines:
                log.warning(LogEvent.CHECK_WARNING, line)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        fatal = [error for error in errors if isinstance(error, FatalError)]
        text = "\n".join(dict.fromkeys(line for error in errors for line in str(error).splitlines()))
        together = FatalError(text) if fatal else RetryableError(text)
        together.exit_code = max(error.exit_code for error in fatal or errors)
        raise together
