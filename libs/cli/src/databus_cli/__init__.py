"""The command line `databus`: one module for each command, its arguments in `arguments`; `__main__` starts one."""
