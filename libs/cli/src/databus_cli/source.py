"""`databus source switch`: move the reader to another host of the database."""

import argparse
import asyncio

from databus import switch
from databus.errors import DatabusError, InvalidSettings
from databus.redis_connection import connect_redis
from databus.settings import Settings, load
from databus_cli.terminal import notice

#: number of polls of Redis, and seconds of each: together longer than the reader takes to switch, or to give up
_TURNS, _TURN_SECONDS = 12, 5


def run(options: argparse.Namespace) -> int:
    """Request the switch, wait for the reader's answer and print it."""
    settings = load(options.config)
    if options.host not in settings.source.hosts:
        raise InvalidSettings(f"{options.host} is none of source.hosts ({', '.join(settings.source.hosts)})")
    answer = asyncio.run(ask(settings, options.host))
    notice(answer.text)
    return 0 if answer.done else 1


async def ask(settings: Settings, host: str, turns: int = _TURNS, seconds: int = _TURN_SECONDS) -> switch.SwitchResult:
    """Request that the reader switches to a host, and wait for its answer. Raises DatabusError if there is none."""
    async with connect_redis(settings.redis) as redis:
        request = await switch.request(redis, settings.name, host)
        for _ in range(turns):
            if result := await switch.result(redis, settings.name, request, seconds):
                return result
    raise DatabusError(f"no reader of {settings.name} has answered within {turns * seconds} s: is it running?")
