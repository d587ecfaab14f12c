"""`databus dump`: take, list, show, download, cancel and delete dumps, or print one as records of a format."""

import argparse
import asyncio
from collections.abc import Awaitable, Callable

from databus_cli.dump.create import create
from databus_cli.dump.download import download
from databus_cli.dump.listing import listing, show
from databus_cli.terminal import notice
from databus_core.dump_client import DumpApi
from databus_core.errors import DatabusError
from databus_core.settings import load


def run(options: argparse.Namespace) -> int:
    """Run the chosen action."""
    return asyncio.run(_run(options))


async def _run(options: argparse.Namespace) -> int:
    async with _open(options) as api:
        return await _ACTIONS[options.action](api, options)


def _open(options: argparse.Namespace) -> DumpApi:
    """Connect to the dump API of `--url`, or to that of the configuration, which is read only then."""
    key = options.api_key_file.read_text().strip() if options.api_key_file else ""
    if options.url:
        return DumpApi(options.url, api_key=key)
    dumps = load(options.config).dumps
    return DumpApi(dumps.url, api_key=key or dumps.api_key.get_secret_value())


async def _messages(api: DumpApi, options: argparse.Namespace) -> int:
    # Not at the top: the other actions need no formats.
    from databus_cli.dump.messages import print_messages

    await print_messages(api, options)
    return 0


async def _cancel(api: DumpApi, options: argparse.Namespace) -> int:
    async def cancel(dump: str) -> None:
        notice(f"dump {dump} is {(await api.cancel(dump)).state}")

    return await _each(options.dumps, cancel)


async def _delete(api: DumpApi, options: argparse.Namespace) -> int:
    async def delete(dump: str) -> None:
        await api.delete(dump)
        notice(f"dump {dump} is deleted")

    return await _each(options.dumps, delete)


async def _each(dumps: list[str], act: Callable[[str], Awaitable[None]]) -> int:
    """Do something to each dump, also after one at which it fails."""
    code = 0
    for dump in dumps:
        try:
            await act(dump)
        except DatabusError as error:
            notice(str(error))
            code = 1
    return code


_ACTIONS: dict[str, Callable[[DumpApi, argparse.Namespace], Awaitable[int]]] = {
    "create": create,
    "list": listing,
    "show": show,
    "download": download,
    "messages": _messages,
    "cancel": _cancel,
    "delete": _delete,
}
