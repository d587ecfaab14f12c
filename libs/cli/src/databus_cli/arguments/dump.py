"""Arguments of `databus dump`."""

import argparse
import re
from pathlib import Path

from databus_cli.arguments.shared import add_action, add_actions, add_format_options, add_tables, describe
from databus_core.config_option import add_config
from databus_messages.formats import known

#: values of `databus_core.manifest.FileFormat`, whose import takes too long for `--help`
FILE_FORMATS = ("jsonl", "parquet", "parquet-typed", "debezium-json", "maxwell-json", "canal-json")

_DESCRIPTION = """\
Work with the dumps of dump-api. A dump is a versioned snapshot of tables, with its exact position in the binlog.
"""
_EPILOG = """\
examples:
  databus dump create --tables 'shop.*' --wait
  databus dump list
  databus dump download 20261121T115346Z-3f2a
"""
_CREATE = """\
Request a dump, and print its id. Dumps are taken one after the other. An interrupt ends the waiting, not the dump.
"""
_CREATE_EPILOG = """\
exit code, with --wait: 0 if the dump is complete, 1 if it failed or was cancelled

examples:
  databus dump create
  databus dump create --tables shop.orders 'crm.*' --wait
  databus dump download "$(databus dump create --wait)" backup
"""
_DOWNLOAD = """\
Download the files of a complete dump into a folder, and its manifest as manifest.json at the end. The dump is leased
meanwhile, and each file's SHA-256 is verified. After a failure, run the command again: it continues where it ended.
"""
_DOWNLOAD_EPILOG = """\
examples:
  databus dump download 20261121T115346Z-3f2a
  databus dump download 20261121T115346Z-3f2a backup --tables 'shop.*' --format parquet
"""
_LIST = "List all dumps, the newest first."
_LIST_EPILOG = """\
examples:
  databus dump list
  databus dump list --json | jq -r 'select(.state == "complete") | .id'
"""
_SHOW = "Show a dump: its state, its position, and the size of its tables."
_SHOW_EPILOG = """\
examples:
  databus dump show 20261121T115346Z-3f2a
  databus dump show 20261121T115346Z-3f2a --json | jq .kafka_offsets
"""
_DELETE = "Delete dumps and their files. A dump that somebody reads is not deleted: the exit code is 1 then."
_DELETE_EPILOG = """\
examples:
  databus dump delete 20261121T115346Z-3f2a
"""
_CANCEL = "Cancel dumps that are waiting or running. They end soon after, without a result."
_CANCEL_EPILOG = """\
examples:
  databus dump cancel 20261121T115346Z-3f2a
"""
_MESSAGES = """\
Print a dump's rows as the records of a format, one a line, as `databus binlog --format` does. The dump is leased while
the command runs; its files are downloaded and verified one by one.
"""
_MESSAGES_EPILOG = """\
examples:
  databus dump messages 20261121T115346Z-3f2a --format debezium-json --tables shop.orders
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's actions and their arguments."""
    describe(parser, _DESCRIPTION, _EPILOG)
    actions = add_actions(parser)
    create = add_action(actions, "create", "request a dump", _CREATE, _CREATE_EPILOG)
    add_tables(create, "these tables (default: all that are captured and published)")
    create.add_argument(
        "--chunked", action="store_true", help="read large tables in parts, over short read views; survives crashes"
    )
    create.add_argument(
        "--wait", action=argparse.BooleanOptionalAction, help="exit when the dump has ended (default: on a terminal)"
    )
    _add_json(create, "print the manifest as one line of JSON")
    listing = add_action(actions, "list", "list all dumps", _LIST, _LIST_EPILOG)
    _add_json(listing, "print each manifest as one line of JSON")
    show = add_action(actions, "show", "show a dump", _SHOW, _SHOW_EPILOG)
    _add_dump(show)
    _add_json(show, "print the manifest as one line of JSON")
    download = add_action(actions, "download", "download the files of a dump", _DOWNLOAD, _DOWNLOAD_EPILOG)
    _add_dump(download)
    download.add_argument("folder", nargs="?", type=Path, metavar="FOLDER", help="(default: the id of the dump)")
    add_tables(download, "these tables of the dump")
    download.add_argument(
        "--format", choices=FILE_FORMATS, metavar="FORMAT", help="which files (default: the dump's first format)"
    )
    messages = add_action(actions, "messages", "a dump's rows as records of a format", _MESSAGES, _MESSAGES_EPILOG)
    _add_dump(messages)
    messages.add_argument("--format", choices=known(), required=True, help="format of the records")
    add_format_options(messages)
    add_tables(messages, "these tables of the dump")
    cancel = add_action(actions, "cancel", "cancel dumps that have not ended", _CANCEL, _CANCEL_EPILOG)
    delete = add_action(actions, "delete", "delete dumps", _DELETE, _DELETE_EPILOG)
    for action in (cancel, delete):
        action.add_argument("dumps", nargs="+", type=_dump, metavar="DUMP_ID", help="ids, as `databus dump list` has")
    for action in (create, listing, show, download, messages, cancel, delete):
        _add_api(action)


def _add_dump(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dump", type=_dump, metavar="DUMP_ID", help="id, as `databus dump list` has it")


def _add_json(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("--json", action="store_true", help=text)


def _add_api(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--url", type=_url, help="URL of dump-api (default: dumps.url of the configuration)")
    parser.add_argument(
        "--api-key-file",
        type=Path,
        metavar="FILE",
        help="key for dump-api (default: dumps.api_key of the configuration)",
    )
    add_config(parser)


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
