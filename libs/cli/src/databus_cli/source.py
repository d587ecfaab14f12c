"""`databus source switch`: send the reader to another host of the database."""

import argparse
import asyncio

from databus import switch
from databus.errors import DatabusError, InvalidSettings
from databus.redis_connection import connect_redis
from databus.settings import Settings, add_config, load
from databus_cli.terminal import tell

_DESCRIPTION = """\
Send the reader to another host of source.hosts. It goes there if that host has all that was published and still has
all that comes next; it waits up to 10 s for one that is behind. A refused host leaves the reader where it is.
"""
#: Redis is asked so often, and so long each time: more than the reader takes to go there, or back
_TURNS, _TURN_SECONDS = 12, 5


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's parser."""
    parser = commands.add_parser("source", help="choose the host that the reader reads from")
    actions = parser.add_subparsers(title="actions", required=True, metavar="ACTION")
    action = actions.add_parser("switch", help="send the reader to another host", description=_DESCRIPTION)
    action.add_argument("host", metavar="HOST:PORT", help="one of source.hosts")
    add_config(action)
    action.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Ask the reader, wait for its answer and show it."""
    settings = load(options.config)
    if options.host not in settings.source.hosts:
        raise InvalidSettings(f"{options.host} is none of source.hosts ({', '.join(settings.source.hosts)})")
    answer = asyncio.run(ask(settings, options.host))
    tell(answer.text)
    return 0 if answer.done else 1


async def ask(settings: Settings, host: str, turns: int = _TURNS, seconds: int = _TURN_SECONDS) -> switch.Outcome:
    """Ask the reader to go to a host and wait for its answer. Raises DatabusError where none comes."""
    async with connect_redis(settings.redis) as redis:
        request = await switch.request(redis, settings.name, host)
        for _ in range(turns):
            if answer := await switch.outcome(redis, settings.name, request, seconds):
                return answer
    raise DatabusError(f"no reader of {settings.name} has answered within {turns * seconds} s: is it running?")
