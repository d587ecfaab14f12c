"""Find a format by name, validate its options, and turn its records into lines."""

import msgspec
from pydantic import ValidationError

from databus_core.errors import InvalidSettings
from databus_core.settings.rules import Rule
from databus_messages.formats import find
from databus_messages.formats.base import Record
from databus_messages.outputs import OutputPlan

_json = msgspec.json.Encoder().encode
_read_json = msgspec.json.Decoder(msgspec.Raw).decode


def output_plan(rule: Rule) -> OutputPlan:
    """Find the rule's format and validate its options. Raises InvalidSettings that names the wrong format or option."""
    kind = find(rule.format)
    try:
        return OutputPlan(rule, kind, kind.options_type.model_validate(rule.options))
    except ValidationError as error:
        [first, *_] = error.errors()
        option = ".".join(map(str, first["loc"]))
        if first["type"] == "extra_forbidden":
            names = ", ".join(kind.options_type.model_fields)
            known = f"it has {names}" if names else "it has none"
            raise InvalidSettings(f"format {rule.format} has no option {option}: {known}") from error
        raise InvalidSettings(f"option {option} of format {rule.format}: {first['msg'].lower()}") from error


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
