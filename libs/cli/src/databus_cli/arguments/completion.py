"""Arguments of `databus completion`."""

import argparse

from databus_cli.arguments.shared import describe

SHELLS = ("bash", "zsh", "fish")

_DESCRIPTION = "Print the script with which a shell completes commands, actions and options of databus."
_EPILOG = """\
examples:
  databus completion bash > ~/.local/share/bash-completion/completions/databus
  databus completion zsh > "${fpath[1]}/_databus"
  databus completion fish > ~/.config/fish/completions/databus.fish
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    describe(parser, _DESCRIPTION, _EPILOG)
    parser.add_argument("shell", choices=SHELLS, help="the shell")
