"""The checks of `--check`: all are made, and their errors are raised together."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from databus_core.errors import DatabusError, FatalError, RetryableError

Check: TypeAlias = Callable[[], Awaitable[object] | None]


async def run_all(*checks: Check) -> None:
    """Make all checks, one after the other. Raises one error, with the lines of all errors."""
    errors: list[DatabusError] = []
    for check in checks:
        try:
            if (pending := check()) is not None:
                await pending
        except DatabusError as error:
            errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        fatal = [error for error in errors if isinstance(error, FatalError)]
        text = "\n".join(dict.fromkeys(line for error in errors for line in str(error).splitlines()))
        together = FatalError(text) if fatal else RetryableError(text)
        together.exit_code = max(error.exit_code for error in fatal or errors)
        raise together
