"""What each command takes: `configure(parser)` of the module with its name.

These modules import little, so that `--help` and wrong usage are answered at once. What checks an argument's value is
imported when that argument is given.
"""
