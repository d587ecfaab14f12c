"""Arguments of `databus dump`."""

import argparse
import re

from databus_cli.arguments.shared import add_format_options, add_tables
from databus_core.config_option import add_config
from databus_messages.formats import known

_DESCRIPTION = """\
Print a dump's rows as the records of a format, one a line, as `databus binlog --format` does. The dump is leased while
the command runs; its files are downloaded and verified one by one.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions and their arguments."""
    actions = parser.add_subparsers(title="actions", required=True, metavar="ACTION")
    action = actions.add_parser("messages", help="a dump's rows as records of a format", description=_DESCRIPTION)
    action.add_argument("dump", type=_dump, metavar="DUMP_ID", help="a complete dump")
    action.add_argument("--format", choices=known(), required=True, help="format of the records")
    add_format_options(action)
    add_tables(action, "these tables of the dump")
    action.add_argument("--url", type=_url, help="URL of dump-api (default: dumps.url of the configuration)")
    add_config(action)


def _dump(text: str) -> str:
    if not re.fullmatch("[0-9A-Za-z-]+", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not the id of a dump")
    return text


def _url(text: str) -> str:
    from pydantic import TypeAdapter, ValidationError

    from databus_core.settings import HttpUrl

    try:
        return TypeAdapter(HttpUrl).validate_python(text)
    except ValidationError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a URL; write it as http://127.0.0.1:8080") from None
