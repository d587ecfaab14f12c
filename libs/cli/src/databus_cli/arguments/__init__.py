"""The arguments of each command: `configure(parser)` in the module with the command's name.

`databus binlog` needs no configuration. Its module imports little, so `--help` and usage errors are quick, and the code
that checks an argument's value is imported only if that argument is given.
"""
