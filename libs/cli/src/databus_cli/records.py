"""A format by its name and options, and the lines of the records that it makes."""

from collections.abc import Callable, Mapping
from functools import partial

import msgspec
from pydantic import ValidationError

from databus.errors import InvalidSettings
from databus_messages.formats import AnyFormat, find
from databus_messages.formats.base import MessageSource, Options, Record

_json = msgspec.json.Encoder().encode
_read_json = msgspec.json.Decoder(msgspec.Raw).decode


def format_of(name: str, options: Mapping[str, object]) -> Callable[[MessageSource], AnyFormat]:
    """Give what makes a format with these options. Raises InvalidSettings where it cannot."""
    kind = find(name)
    return partial(_make, kind, _read_options(name, kind.options_type, options))


def _make(kind: type[AnyFormat], options: Options, source: MessageSource) -> AnyFormat:
    return kind(source, options)


def _read_options(name: str, kind: type[Options], given: Mapping[str, object]) -> Options:
    try:
        return kind.model_validate(dict(given))
    except ValidationError as error:
        [first, *_] = error.errors()
        option = ".".join(map(str, first["loc"]))
        if first["type"] == "extra_forbidden":
            known = f"it has {', '.join(kind.model_fields)}" if kind.model_fields else "it has none"
            raise InvalidSettings(f"format {name} has no option {option}: {known}") from error
        raise InvalidSettings(f"option {option} of format {name}: {first['msg'].lower()}") from error


def line_of(record: Record) -> bytes:
    """Make one line of JSON."""
    parts = {"topic": _json(record.topic)} if record.topic is not None else {}
    parts |= {"key": _shown(record.key), "value": _shown(record.value)}
    if record.headers:
        headers = (_json(name) + b":" + _shown(value) for name, value in record.headers)
        parts["headers"] = b"{%b}" % b",".join(headers)
    return b"{%b}\n" % b",".join(b'"%b":%b' % (name.encode(), part) for name, part in parts.items())


def _shown(content: bytes | None) -> bytes:
    """Give JSON as it is, other text as a string, bytes as base64."""
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
