"""Notices cancellations that a client has swallowed.

redis-py swallows a cancellation that arrives just after it has sent a command, aiokafka one that arrives while it
stops, asyncmy one that arrives just when it has connected (`asyncio.wait_for` does, before Python 3.12). A task that
goes on after such a call may never end.
"""

import asyncio


def raise_if_cancelled() -> None:
    """Raise CancelledError if the current task was cancelled."""
    if (task := asyncio.current_task()) and task.cancelling():
        raise asyncio.CancelledError
