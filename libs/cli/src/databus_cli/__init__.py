"""The command line `databus`: one module for each command, with its arguments in `arguments`; run by `__main__`."""
