"""`databus source switch`: move the reader to another host of the database."""

import argparse
import asyncio

from databus_cli.terminal import notice
from databus_core import switch
from databus_core.errors import DatabusError, InvalidSettings
from databus_core.redis_connection import connect_redis
from databus_core.settings import Settings, load

#: number of polls of Redis; together they normally take longer than the reader needs to switch or to give up
_POLLS = 12
#: seconds of one poll
_POLL_SECONDS = 5


def run(options: argparse.Namespace) -> int:
    """Request the switch, wait for the reader's answer and print it."""
    settings = load(options.config)
    if options.host not in settings.source.hosts:
        raise InvalidSettings(f"{options.host} is not one of source.hosts ({', '.join(settings.source.hosts)})")
    answer = asyncio.run(ask(settings, options.host))
    notice(answer.text)
    return 0 if answer.done else 1


async def ask(settings: Settings, host: str, polls: int = _POLLS, seconds: int = _POLL_SECONDS) -> switch.SwitchResult:
    """Request that the reader switches to a host, and wait for its answer. Raises DatabusError without an answer."""
    async with connect_redis(settings.redis) as redis:
        request = await switch.request(redis, settings.name, host)
        for _ in range(polls):
            if result := await switch.result(redis, settings.name, request, seconds):
                return result
    waited = polls * seconds
    raise DatabusError(f"no reader of {settings.name} has answered within {waited} s: check that a reader is running")
