"""Lines of the records that the publisher would write, in any of its formats."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import msgspec
from pydantic import ValidationError

from databus.cli.binlog.changes import Changes
from databus.cli.binlog.lines import LineFormat
from databus.cli.binlog.schemas import flavor_of
from databus.cli.binlog.telling import Holding, Teller
from databus.errors import InvalidSettings, PoisonError
from databus.formats import find
from databus.formats.base import Options, Record, Source
from databus_binlog import AnyEvent, FormatDescription, TableMap

#: what stands for the pipeline's name
NAME = "binlog"

_json = msgspec.json.Encoder().encode
_read_json = msgspec.json.Decoder(msgspec.Raw).decode


class Messages(LineFormat):
    """A line for each record."""

    def __init__(self, name: str, options: Mapping[str, object], wanted: Callable[[str, str], bool]) -> None:
        super().__init__()
        self._class = find(name)
        self._options = _read_options(name, self._class.options_type, options)
        self._wanted = wanted
        self._teller: Teller | None = None

    def of(self, event: AnyEvent, tables: Mapping[str, TableMap]) -> Iterator[bytes]:
        """Give the lines of an event; a format that needs the transaction's end gets all of them there."""
        if self._teller is None:
            self._teller = self._begin(event if isinstance(event, FormatDescription) else self.head)
        try:
            yield from map(_line, self._teller.tell(event, tables))
        except PoisonError as error:
            where = f"in the transaction that {event.file}:{event.start} belongs to"
            raise PoisonError(f"{error} ({where}); --format json can tell it") from error

    def finish(self) -> Counter[str]:
        """Count what had no line; nothing more comes."""
        if self._teller is not None:
            self._teller.finish()
        return self._left_out

    def _begin(self, head: FormatDescription | None) -> Teller:
        if head is None:
            raise AssertionError("a file begins with its head")
        made = self._class(Source(name=NAME, flavor=flavor_of(head), host="", port=0), self._options)
        changes = Changes(head, self._wanted, self._left_out)
        return (Holding if made.needs_end else Teller)(made, changes, self._left_out)


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


def _line(record: Record) -> bytes:
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
        return bytes(_read_json(content))
    except msgspec.DecodeError:
        pass
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return _json({"base64": content})
    return _json(text if text.isprintable() else {"base64": content})
