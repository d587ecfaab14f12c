"""Arguments of `databus init`."""

import argparse
from pathlib import Path

from databus_cli.arguments.shared import describe

SERVERS = ("mariadb", "mysql")

_DESCRIPTION = """\
Write a first configuration, with comments, for all services; and print the SQL and the lines of my.cnf that prepare the
database. Nothing is connected to. On a terminal the command asks for what is not given; else it takes the defaults.
The account's password is never in the configuration: it is read from a file, which is made if it does not exist.
"""
_EPILOG = """\
examples:
  databus init
  databus init --name shop --server mariadb --hosts db1:3306 --tables 'shop.*' --sql prepare.sql
  mariadb -h db1 -u root -p < prepare.sql
  databus check --config databus.yaml
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments. What is not given is None, and is asked for."""
    describe(parser, _DESCRIPTION, _EPILOG)
    parser.add_argument(
        "file", nargs="?", type=Path, default=Path("databus.yaml"), metavar="FILE", help="(default: %(default)s)"
    )
    parser.add_argument("--name", help="name of the pipeline, a part of topics and keys (default: shop)")
    parser.add_argument("--server", choices=SERVERS, help="kind of the database (default: mariadb)")
    parser.add_argument("--hosts", nargs="+", metavar="HOST:PORT", help="the database (default: 127.0.0.1:3306)")
    parser.add_argument("--user", help="the account that the SQL creates (default: databus)")
    parser.add_argument("--tables", nargs="+", metavar="PATTERN", help="tables to capture (default: NAME.*)")
    parser.add_argument("--redis", metavar="URL", help="(default: redis://127.0.0.1:6379/0)")
    parser.add_argument("--kafka", nargs="+", metavar="HOST:PORT", help="brokers (default: 127.0.0.1:9092)")
    parser.add_argument("--start", choices=("snapshot", "latest"), help="with all rows, or now (default: snapshot)")
    parser.add_argument(
        "--password-file", type=Path, metavar="FILE", help="the account's password (default: databus-password)"
    )
    parser.add_argument("--sql", type=Path, metavar="FILE", help="write the SQL to this file instead of printing it")
    parser.add_argument("--force", action="store_true", help="overwrite the configuration and the file of --sql")
