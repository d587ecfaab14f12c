"""The error that the compiled code raises for malformed packed rows."""


class MalformedRows(Exception):
    """Packed rows are not a msgpack array of arrays of `bin` and nil, are cut off, or have bytes after them."""


class MalformedEvents(Exception):
    """Bytes are not a msgpack array of events, as the decoder or the pipe has them."""
