"""Encode rows in each format that needs no schema registry; compare the CPU time with that of `json.dumps`.

`json.dumps` writes the same messages, if they are JSON. Rows come in events as large as in a binlog: 33 rows of W1m, 22
row images of W2. As in the publisher, formats that accept packed rows get them as msgpack. No server takes part.
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

from databus_binlog import float_text
from databus_changes.ddl.apply import apply_ddl
from databus_changes.ddl.dialect import Dialect
from databus_changes.ddl.statement import parse_statement
from databus_core.events import Action, Begin, Row, Table
from databus_messages.formats import AnyFormat, find, known
from databus_messages.formats.base import Change, MessageSource, Record, TransactionEnd
from databus_wire.packed_rows import PackedRows

#: goals: the CPU time of `json.dumps` divided by ours
GOALS = {"databus": 5, "canal-json": 3, "maxwell-json": 3, "debezium-json": 3}
OPTIONS = {"debezium-json": {"schemas_enable": False}}
#: formats that need a schema registry
LEFT_OUT = {"debezium-avro"}
#: rows events of each workload
EVENTS = 500
RUNS = 7

#: returns a random row as SQL literals, given its number
RandomRow = Callable[[random.Random, int], Sequence[object]]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=RUNS)
    options.add_argument("--format", action="append", choices=known(), help="only this format; can be repeated")
    chosen = options.parse_args()
    formats = [name for name in chosen.format or known() if name not in LEFT_OUT]
    results = []
    for name, changes in {"W1m": list(islice(w1m(), EVENTS)), "W2": list(islice(w2(), EVENTS))}.items():
        results += speed(name, changes, formats, chosen.runs)
    report("formats", results)


def speed(name: str, changes: list[Change], formats: list[str], runs: int) -> list[Result]:
    """Measure the formats alternately; return the speed of each, and how many times as fast as `json.dumps` it is."""
    ours: dict[str, list[float]] = {name: [] for name in formats}
    theirs: dict[str, list[float]] = {name: [] for name in formats}
    rows = sum(len(change.ordinals) for change in changes)
    encoders = {format_name: new_encoder(format_name) for format_name in formats}
    inputs = {name: [packed(change, encoder) for change in changes] for name, encoder in encoders.items()}
    messages = {name: as_dicts(encode(encoder, inputs[name])) for name, encoder in encoders.items()}
    for format_name in track(formats * runs, f"encoding {name}", console=CONSOLE):
        ours[format_name].append(
            rows / cpu_seconds(lambda which: exhaust(encode(encoders[which], inputs[which])), format_name)
        )
        if messages[format_name]:
            theirs[format_name].append(rows / cpu_seconds(lambda which: dump(messages[which]), format_name))
    results = [Result(f"{name}: {which}", "rows/s", figures) for which, figures in ours.items()]
    for which, figures in theirs.items():
        if figures:
            times = [fast / slow for fast, slow in zip(ours[which], figures, strict=True)]
            results.append(Result(f"{name}: {which}", "times as fast", times, "json.dumps", GOALS.get(which)))
    return results


def cpu_seconds(work: Callable[[str], None], name: str) -> float:
    """Return the CPU time that `work(name)` takes."""
    begin = process_time()
    work(name)
    return process_time() - begin


def new_encoder(name: str) -> AnyFormat:
    format_class = find(name)
    source = MessageSource(name="bench", flavor="mariadb", host="127.0.0.1", port=3306)
    return format_class(source, format_class.options_type.model_validate(OPTIONS.get(name, {})))


def encode(encoder: AnyFormat, changes: Iterable[Change]) -> Iterator[Record]:
    for change in changes:
        yield from encoder.change(change)


def packed(change: Change, encoder: AnyFormat) -> Change:
    """Pack the change's rows as the publisher does for this format."""
    if not encoder.accepts_packed_rows:
        return change
    rows = PackedRows(msgspec.Raw(msgspec.msgpack.encode(change.rows)))
    return msgspec.structs.replace(change, rows=rows)


def exhaust(records: Iterable[Record]) -> None:
    """Make all records and keep none of them, as `dump` keeps no text."""
    deque(records, maxlen=0)


def as_dicts(records: Iterable[Record]) -> list[object]:
    """Parse the messages; return an empty list if they are not JSON."""
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
    """Yield events that insert 33 rows each."""
    draw, table = random.Random(7), table_of("W1m")
    for number in range(EVENTS):
        yield change(table, Action.INSERT, number, rows_of(sysbench_row, draw, table, number * 33, 33))


def w2() -> Iterator[Change]:
    """Yield inserts, updates and deletes in the workload's mix, with 22 row images in each event."""
    draw, table = random.Random(7), table_of("W2")
    # rows in a batch of the workload, divided by rows in an event; an updated row has two images
    events_per_batch = {Action.INSERT: 600 / 22, Action.UPDATE: 200 / 11, Action.DELETE: 100 / 22}
    for number, action in enumerate(draw.choices([*events_per_batch], [*events_per_batch.values()], k=EVENTS)):
        if action is not Action.UPDATE:
            yield change(table, action, number, rows_of(typed_row, draw, table, number * 22, 22))
            continue
        before = rows_of(typed_row, draw, table, number * 22, 11)
        pairs = [[row, updated(row)] for row in before]
        yield change(table, action, number, [image for pair in pairs for image in pair])


def updated(row: Row) -> Row:
    """Return the row's after image: as in W2, an update changes i8, u64, amount, dt6 and name."""
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


def rows_of(random_row: RandomRow, draw: random.Random, table: Table, first: int, count: int) -> list[Row]:
    """Return random rows as canonical text."""
    return [
        [text(column.type, literal) for column, literal in zip(table.columns, random_row(draw, number), strict=True)]
        for number in range(first, first + count)
    ]


def text(column_type: str, literal: object) -> bytes | None:
    """Return the canonical text of a literal's value."""
    match literal:
        case "NULL":
            return None
        case float():
            return float_text(literal, single=column_type == "float")
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
