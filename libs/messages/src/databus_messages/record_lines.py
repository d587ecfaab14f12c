"""Records of any format as lines of JSON, for people and for files."""

import msgspec

from databus_messages.formats.base import Record

_json = msgspec.json.Encoder().encode
_read_json = msgspec.json.Decoder(msgspec.Raw).decode


def line_of(record: Record) -> bytes:
    """Format a record as one line of JSON."""
    parts = {"topic": _json(record.topic)} if record.topic is not None else {}
    parts |= {"key": _shown(record.key), "value": _shown(record.value)}
    if record.headers:
        headers = (_json(name) + b":" + _shown(value) for name, value in record.headers)
        parts["headers"] = b"{%b}" % b",".join(headers)
    return b"{%b}\n" % b",".join(b'"%b":%b' % (name.encode(), part) for name, part in parts.items())


def _shown(content: bytes | None) -> bytes:
    """Format JSON on one line, other printable text as a string, and anything else as base64."""
    if content is None:
        return b"null"
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return _json({"base64": content})
    try:
        return msgspec.json.format(_read_json(content), indent=-1) if "\n" in text else bytes(_read_json(content))
    except msgspec.DecodeError:
        return _json(text if text.isprintable() else {"base64": content})
