"""`databus pipeline`: show the state of a pipeline, make it continue elsewhere, or skip one transaction."""

import argparse
import asyncio

from databus_cli.pipeline.reset import reset
from databus_cli.pipeline.skip import skip
from databus_core.settings import load

_ACTIONS = {"reset": reset, "skip": skip}


def run(options: argparse.Namespace) -> int:
    """Run the chosen action."""
    return asyncio.run(_ACTIONS[options.action](load(options.config), options))
