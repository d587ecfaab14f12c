"""Encode rows in every format: rows a second of processor time, against `json.dumps` of the same messages.

An event's rows are one `Change`, as in a binlog: 33 rows of W1m, 22 row images of W2. A format that accepts packed rows
gets them as the publisher gives them: in msgpack. No server takes part.
"""

import argparse
import json
import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from time import process_time

import msgspec
from report import Result, report
from rich.progress import track
from served import CONSOLE
from workloads import WORKLOADS, sysbench_row, typed_row

from databus.events import Action, Begin, Row, Table
from databus_binlog import float_text
from databus_changes.ddl.apply import apply_ddl
from databus_changes.ddl.dialect import Dialect
from databus_changes.ddl.statement import parse_statement
from databus_messages.formats import AnyFormat, find, known
from databus_messages.formats.base import Change, MessageSource, Record, TransactionEnd
from databus_wire.packed_rows import PackedRows

#: times as fast as `json.dumps`
GOALS = {"databus": 5, "canal-json": 3, "maxwell-json": 3, "debezium-json": 3}
OPTIONS = {"debezium-json": {"schemas_enable": False}}
#: needs a schema registry
LEFT_OUT = {"debezium-avro"}
EVENTS = 500
RUNS = 7

Draw = Callable[[random.Random, int], Sequence[object]]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=RUNS)
    options.add_argument("--format", action="append", choices=known(), help="one of the formats; can be repeated")
    chosen = options.parse_args()
    formats = [name for name in chosen.format or known() if name not in LEFT_OUT]
    results = []
    for name, changes in {"W1m": list(islice(w1m(), EVENTS)), "W2": list(islice(w2(), EVENTS))}.items():
        results += speed(name, changes, formats, chosen.runs)
    report("formats", results)


def speed(name: str, changes: list[Change], formats: list[str], runs: int) -> list[Result]:
    """Let the formats take turns; gives rows/s of each, and how many times as fast as `json.dumps` it is."""
    ours: dict[str, list[float]] = {name: [] for name in formats}
    theirs: dict[str, list[float]] = {name: [] for name in formats}
    rows = sum(len(change.ordinals) for change in changes)
    encoders = {format_name: made(format_name) for format_name in formats}
    given = {name: [packed(change, encoder) for change in changes] for name, encoder in encoders.items()}
    messages = {name: as_dicts(encode(encoder, given[name])) for name, encoder in encoders.items()}
    for format_name in track(formats * runs, f"encoding {name}", console=CONSOLE):
        ours[format_name].append(
            rows / timed(lambda which: consume(encode(encoders[which], given[which])), format_name)
        )
        if messages[format_name]:
            theirs[format_name].append(rows / timed(lambda which: dump(messages[which]), format_name))
    results = [Result(f"{name}: {which}", "rows/s", figures) for which, figures in ours.items()]
    for which, figures in theirs.items():
        if figures:
            times = [fast / slow for fast, slow in zip(ours[which], figures, strict=True)]
            results.append(Result(f"{name}: {which}", "times as fast", times, "json.dumps", GOALS.get(which)))
    return results


def timed(work: Callable[[str], None], name: str) -> float:
    """Tell the seconds of processor time that something takes."""
    begin = process_time()
    work(name)
    return process_time() - begin


def made(name: str) -> AnyFormat:
    kind = find(name)
    source = MessageSource(name="bench", flavor="mariadb", host="127.0.0.1", port=3306)
    return kind(source, kind.options_type.model_validate(OPTIONS.get(name, {})))


def encode(encoder: AnyFormat, changes: Iterable[Change]) -> Iterator[Record]:
    for change in changes:
        yield from encoder.change(change)


def packed(change: Change, encoder: AnyFormat) -> Change:
    """Give the change as the publisher gives it to this format."""
    if not encoder.accepts_packed_rows:
        return change
    rows = PackedRows(msgspec.Raw(msgspec.msgpack.encode(change.rows)))
    return msgspec.structs.replace(change, rows=rows)


def consume(records: Iterable[Record]) -> None:
    """Let each record go when the next is made, as `dump` does."""
    deque(records, maxlen=0)


def as_dicts(records: Iterable[Record]) -> list[object]:
    """Read the messages back; nothing if they are no JSON."""
    contents = [content for record in records for content in record[:2] if content is not None]
    try:
        return [json.loads(content) for content in contents]
    except ValueError:
        return []


def dump(messages: Iterable[object]) -> None:
    for message in messages:
        json.dumps(message).encode()


# --- the rows of the workloads ---------------------------------------------------------------------------------------


def w1m() -> Iterator[Change]:
    """Insert 33 rows an event."""
    draw, table = random.Random(7), table_of("W1m")
    for number in range(EVENTS):
        yield change(table, Action.INSERT, number, rows_of(sysbench_row, draw, table, number * 33, 33))


def w2() -> Iterator[Change]:
    """Insert, update and delete in the workload's mix, 22 row images an event."""
    draw, table = random.Random(7), table_of("W2")
    actions, weights = [Action.INSERT, Action.UPDATE, Action.DELETE], [600 / 22, 200 / 11, 100 / 22]
    for number, action in enumerate(draw.choices(actions, weights, k=EVENTS)):
        if action is not Action.UPDATE:
            yield change(table, action, number, rows_of(typed_row, draw, table, number * 22, 22))
            continue
        before = rows_of(typed_row, draw, table, number * 22, 11)
        pairs = [[row, updated(row)] for row in before]
        yield change(table, action, number, [image for pair in pairs for image in pair])


def updated(row: Row) -> Row:
    """Change what an update of W2 changes: i8, u64, amount, dt6 and name."""
    new = list(row)
    new[1], new[5], new[6], new[7] = b"-7", b"%d" % (int(row[5] or 0) // 2), b"12.5000", b"2024-06-07 08:09:10.111213"
    new[10] = (row[10] or b"")[:180] + b"!"
    return new


def table_of(workload: str) -> Table:
    dialect = Dialect(flavor="mariadb", integer_widths=True)
    statement = parse_statement(WORKLOADS[workload].table, "bench")
    [table] = apply_ddl(statement, {}, {"bench": "utf8mb4"}, dialect).tables.values()
    assert table
    return table


def rows_of(row: Draw, draw: random.Random, table: Table, first: int, count: int) -> list[Row]:
    """Draw rows as canonical text."""
    return [
        [text(column.type, literal) for column, literal in zip(table.columns, row(draw, number), strict=True)]
        for number in range(first, first + count)
    ]


def text(kind: str, literal: object) -> bytes | None:
    """Give the canonical text of a literal's value."""
    match literal:
        case "NULL":
            return None
        case float():
            return float_text(literal, single=kind == "float")
        case str() if literal.startswith("x'"):
            return bytes.fromhex(literal[2:-1])
        case str():
            return literal.removeprefix("'").removesuffix("'").encode()
    return str(literal).encode()


def change(table: Table, action: Action, number: int, rows: list[Row]) -> Change:
    begin = Begin(number, f"0-1-{number}", "mysql-bin.000007", 1, 7, 1_700_000_000_000_000 + number)
    count = len(rows) // (2 if action is Action.UPDATE else 1)
    end = TransactionEnd(number, 8192 * (number + 1), count)
    return Change(table, begin, action, 8192 * number, 8192 * number + 8000, 0, range(count), rows, None, end)


if __name__ == "__main__":
    main()
