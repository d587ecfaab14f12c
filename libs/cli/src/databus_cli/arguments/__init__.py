"""The arguments of each command: `configure(parser)` in the module with its name.

These modules import little, so that `--help` and usage errors take no time. The code that checks an argument's value
is imported only if that argument is given.
"""
