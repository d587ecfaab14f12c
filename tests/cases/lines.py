"""Messages as lines of a case: topic and partition if the case has several, `->`, and JSON without omitted members."""

from collections.abc import Iterator

import msgspec

from cases.case import Case
from databus_core.errors import PoisonError
from databus_messages.message import Message
from databus_messages.routing.partitions import Partition

_json = msgspec.json.Encoder().encode
_read_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
#: format → members that differ from run to run, or are long and rarely the point of a case
_OMITTED = {
    "databus": {"Pos", "Table"},
    "canal-json": {"database", "es", "ts", "id", "gtid", "mysqlType", "sqlType"},
    "debezium-json": {"schema", "source", "ts_ms", "ts_us", "ts_ns", "transaction"},
    "dip": {"BINLOG_NAME", "BINLOG_POS", "DATABASE", "GLOBAL_ID", "TIME", "database", "es", "id", "ts"},
    "maxwell-json": {"database", "ts", "xid", "def"},
    "tdsql": {"db", "logtype", "eventtype", "localip", "localport", "begintime", "gtid", "event_index", "xid"},
}


def lines_of(message: Message, case: Case) -> Iterator[str]:
    """Encode a message; yield a line for each record in each partition, or one for a record in a format's own topic.

    A message that would become a dead letter has a line with the error.
    """
    omitted = (_OMITTED[message.output.rule.format] | case.omitted) - case.shown
    try:
        records = message.encode()
    except PoisonError as error:
        yield from (f"{_address(partition, case)}!! {error}" for partition in message.partitions)
        return
    for record in records:
        content = _shown(record.value, omitted)
        if "key" in case.shown:
            content = f"{_shown(record.key, omitted)} {content}"
        if record.topic is not None:
            yield f"{record.topic} -> {content}"
        else:
            yield from (f"{_address(partition, case)}-> {content}" for partition in message.partitions)


def _address(partition: Partition, case: Case) -> str:
    """Return the topic if the case has several routes, and the partition if its topics have several."""
    parts = [partition.topic] if len(case.routes) > 1 else []
    parts += [str(partition.number)] if case.partitions > 1 else []
    return "/".join(parts) + " " if parts else ""


def _shown(content: bytes | None, omitted: set[str]) -> str:
    """Format JSON on one line, without the omitted members, and with base64 values of format `databus` as text."""
    if content is None:
        return "null"
    return msgspec.json.format(_without(content, omitted), indent=0).decode()


def _without(content: bytes | msgspec.Raw, omitted: set[str]) -> bytes:
    try:
        members = _read_members(content)
    except msgspec.ValidationError:  # not an object
        return bytes(content)
    kept: dict[str, bytes] = {}
    for name, value in members.items():
        if name not in omitted:
            nested = {path.removeprefix(f"{name}.") for path in omitted if path.startswith(f"{name}.")}
            kept[name] = _DECODERS[name](value) if name in _DECODERS else _without(value, nested) if nested else value
    return _json({name: msgspec.Raw(value) for name, value in kept.items()})


def _texts(rows: msgspec.Raw) -> bytes:
    """Replace each base64 value of a list of rows by its text."""
    decoded = msgspec.json.decode(rows, type=list[list[bytes | bool | None]])
    return _json([[_text(cell) if isinstance(cell, bytes) else cell for cell in row] for row in decoded])


def _text(cell: bytes) -> str:
    return cell.decode(errors="backslashreplace")


#: members of format `databus` that contain base64 → how to show their text
_DECODERS = {"Rows": _texts, "Query": lambda query: _json(_text(msgspec.json.decode(query, type=bytes)))}
