"""`databus source switch`: send the reader to another host of the database."""

import argparse
import asyncio

from databus import switch
from databus.errors import DatabusError, InvalidSettings
from databus.redis_connection import connect_redis
from databus.settings import Settings, load
from databus_cli.terminal import notice

#: Redis is asked so often, and so long each time: more than the reader takes to go there, or back
_TURNS, _TURN_SECONDS = 12, 5


def run(options: argparse.Namespace) -> int:
    """Ask the reader, wait for its answer and show it."""
    settings = load(options.config)
    if options.host not in settings.source.hosts:
        raise InvalidSettings(f"{options.host} is none of source.hosts ({', '.join(settings.source.hosts)})")
    answer = asyncio.run(ask(settings, options.host))
    notice(answer.text)
    return 0 if answer.done else 1


async def ask(settings: Settings, host: str, turns: int = _TURNS, seconds: int = _TURN_SECONDS) -> switch.SwitchResult:
    """Ask the reader to go to a host and wait for its answer. Raises DatabusError where none comes."""
    async with connect_redis(settings.redis) as redis:
        request = await switch.request(redis, settings.name, host)
        for _ in range(turns):
            if result := await switch.result(redis, settings.name, request, seconds):
                return result
    raise DatabusError(f"no reader of {settings.name} has answered within {turns * seconds} s: is it running?")
