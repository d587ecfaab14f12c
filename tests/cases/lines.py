"""Messages as lines of a case: an address where there are several, `->`, and JSON without what a case omits."""

from collections.abc import Iterator

import msgspec

from cases.case import Case
from databus_messages.message import Message
from databus_messages.routing.partitions import Partition

_json = msgspec.json.Encoder().encode
_read_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
#: members that differ from run to run, or are long and rarely the point of a case
_OMITTED = {
    "databus": {"Pos", "Table"},
    "canal-json": {"database", "es", "ts", "id", "gtid", "mysqlType", "sqlType"},
    "debezium-json": {"schema", "source", "ts_ms", "ts_us", "ts_ns", "transaction"},
    "dip": {"BINLOG_NAME", "BINLOG_POS", "DATABASE", "GLOBAL_ID", "TIME", "database", "es", "id", "ts"},
    "maxwell-json": {"database", "ts", "xid", "def"},
    "tdsql": {"db", "logtype", "eventtype", "localip", "localport", "begintime", "gtid", "event_index", "xid"},
}


def lines_of(message: Message, case: Case) -> Iterator[str]:
    """Encode a message; write a line for each of its records in each partition."""
    omitted = (_OMITTED[message.output.rule.format] | case.omitted) - case.shown
    for record in message.encode():
        content = _shown(record.value, omitted)
        if "key" in case.shown:
            content = f"{_shown(record.key, omitted)} {content}"
        if record.topic is not None:
            yield f"{record.topic} -> {content}"
        else:
            yield from (f"{_address(partition, case)}-> {content}" for partition in message.partitions)


def _address(partition: Partition, case: Case) -> str:
    """Name the topic if there are several, and the partition if the topic has several."""
    parts = [partition.topic] if len(case.routes) > 1 else []
    parts += [str(partition.number)] if case.partitions > 1 else []
    return "/".join(parts) + " " if parts else ""


def _shown(content: bytes | None, omitted: set[str]) -> str:
    """Write JSON on one line, without the omitted members and with the text of base64 cells."""
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
            below = {path.removeprefix(f"{name}.") for path in omitted if path.startswith(f"{name}.")}
            kept[name] = _CELLS[name](value) if name in _CELLS else _without(value, below) if below else value
    return _json({name: msgspec.Raw(value) for name, value in kept.items()})


def _texts(rows: msgspec.Raw) -> bytes:
    """Decode the cells of format `databus`."""
    decoded = msgspec.json.decode(rows, type=list[list[bytes | None]])
    return _json([[cell if cell is None else _text(cell) for cell in row] for row in decoded])


def _text(cell: bytes) -> str:
    return cell.decode(errors="backslashreplace")


_CELLS = {"Rows": _texts, "Query": lambda query: _json(_text(msgspec.json.decode(query, type=bytes)))}
