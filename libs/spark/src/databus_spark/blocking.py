"""Runs a coroutine for callers that are not asynchronous, also in a notebook, whose own event loop is running."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

_T = TypeVar("_T")


def wait_for(work: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine to its end, and return its result."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:  # there is none
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
