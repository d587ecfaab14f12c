"""The error of the compiled code."""


class MalformedRows(Exception):
    """Packed rows are not a msgpack array of arrays of `bin` and nil, or they are cut off."""
