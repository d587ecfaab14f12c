"""The arguments of each command: `configure(parser)` in the module with the command's name.

These modules import little, so that `--help` and usage errors take no time. The code that checks an argument's value
is imported only if that argument is given.
"""
