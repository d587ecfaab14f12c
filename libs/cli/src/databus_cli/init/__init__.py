"""`databus init`: write a first configuration, and the SQL that prepares the database."""

import argparse
import os
import secrets
import sys
from pathlib import Path

from databus_cli.init.answers import answers
from databus_cli.init.texts import configuration, preparation
from databus_cli.terminal import notice
from databus_core.errors import UsageError
from databus_core.settings import load


def run(options: argparse.Namespace) -> int:
    """Ask, then write the files. Nothing is written before all answers are valid."""
    path: Path = options.file
    for file in (path, options.sql):
        if file and file.exists() and not options.force:
            raise UsageError(f"{file} exists: give another file, or --force to overwrite it")
    found = answers(options)
    password_file = (options.password_file or path.parent / "databus-password").absolute()
    password = _password(password_file)
    path.write_text(configuration(found, password_file), encoding="utf-8")
    notice(f"wrote {path}")
    load(path)
    sql = preparation(found, password)
    if options.sql:
        options.sql.unlink(missing_ok=True)
        _write_secret(options.sql, sql)
        notice(f"wrote {options.sql}: run it on the database as an administrator")
    else:
        sys.stdout.write(sql)
        notice("run this SQL on the database as an administrator")
    notice(f"then run: databus check --config {path}")
    return 0


def _password(path: Path) -> str:
    """Read the password from the file; make both if there is no file."""
    if path.exists():
        return path.read_text(encoding="utf-8").rstrip("\n")
    password = f"{secrets.token_urlsafe(18)}-Aa1"  # with what MySQL's validate_password asks for
    _write_secret(path, f"{password}\n")
    notice(f"wrote {path}: the password of the account")
    return password


def _write_secret(path: Path, text: str) -> None:
    """Write a new file that only its owner can read."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
