"""`databus pipeline`: show the state of a pipeline, and make it continue elsewhere."""

import argparse
import asyncio

from databus.settings import load
from databus_cli.pipeline.reset import reset
from databus_cli.pipeline.show import show

_ACTIONS = {"show": show, "reset": reset}


def run(options: argparse.Namespace) -> int:
    """Run the chosen action."""
    return asyncio.run(_ACTIONS[options.action](load(options.config), options))
