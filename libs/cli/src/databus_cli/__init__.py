"""The user's command line `databus`: one module for each command, `__main__` puts them together."""
