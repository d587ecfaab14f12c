"""The option `--config`. This module imports little: a command's `--help` needs it, and no settings."""

import argparse
import os
from pathlib import Path


def config_path() -> Path:
    """Return the path of the file that is read without `--config`."""
    return Path(os.environ.get("DATABUS_CONFIG", "/etc/databus/databus.yaml"))


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add the option `--config`, which gives the path for `databus_core.settings.load`."""
    parser.add_argument(
        "--config",
        type=Path,
        default=config_path(),
        metavar="FILE",
        help="configuration file (default: %(default)s, or $DATABUS_CONFIG)",
    )
