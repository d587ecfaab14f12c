"""Writes what a drill showed into docs/operations/night-drill.md: for each fault one table, between two comments."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from faults.drill.logs import Line
from faults.drill.recorder import Moment, Record, looking_back

PAGE = Path(__file__).parents[3] / "docs/operations/night-drill.md"
_MIB = 2**20
#: the longest reason in a cell, and the most lines of one event
_LONGEST, _LINES = 160, 2


def write(parts: dict[str, str]) -> None:
    """Replace these parts of the page: of a fault, by its name, or `conditions`."""
    text = PAGE.read_text()
    for name, part in parts.items():
        begin, end = f"<!-- made by `make drill`: {name} -->\n", f"<!-- end of {name} -->\n"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        text, found = pattern.subn(lambda _, new=f"{begin}\n{part}\n\n{end}": new, text)
        assert found == 1, name
    PAGE.write_text(text)


def shown(record: Record) -> str:
    """Return the part of a fault: a table, what was measured, the alerts, and the lines."""
    return "\n".join(_part(record))


def _part(record: Record) -> Iterator[str]:
    yield "| after | `/readyz` | metrics | alerts | log, warnings and errors |\n|---|---|---|---|---|"
    last = Moment(-1)
    for moment in record.moments:
        if moment.note:
            yield f"| {clock(moment.at)} | **{moment.note}** | | | |"
        elif _differs(moment, last, record.left) or moment is record.moments[-1]:
            yield f"| {clock(moment.at)} | {' | '.join(cells(moment, last, record.left))} |"
            last = moment
    yield ""
    yield from (f"* {what}: {seconds:.1f} s" for what, seconds in record.measured.items())
    if record.fired:
        in_order = sorted(record.fired.items(), key=itemgetter(1))
        yield f"* Fired: {', '.join(f'{name} at {clock(at)}' for name, at in in_order)}."
    else:
        yield "* No alert fired."
    for name, age in looking_back().items():
        if any(fired.partition(" ")[0] == name for fired in record.fired):
            yield f"* {name} looks back, so it ends by itself {age} after its cause."
    if record.left:
        yield f"* Left of the faults before: {', '.join(record.left)}."
    yield f"* All was quiet after {clock(record.quiet)}."
    if texts := list(_texts(record)):
        yield "\nThe lines:\n\n```"
        yield from texts
        yield "```"
    for moment in record.moments:
        if moment.note and moment.lines:
            yield f"\n{clock(moment.at)}, {moment.note}:\n\n```"
            yield from (line.text for line in moment.lines)
            yield "```"


def _texts(record: Record) -> Iterator[str]:
    """Yield what was logged, each line once, and of each event no more than some lines."""
    lines = dict.fromkeys((line.event, line.text) for each in record.moments for line in each.lines if line.event)
    for event, group in groupby(sorted(lines, key=itemgetter(0)), key=itemgetter(0)):
        texts = [text for _, text in group]
        yield from (f"{event}: {text}" for text in texts[:_LINES])
        if len(texts) > _LINES:
            yield f"{event}: … {len(texts) - _LINES} more"


def _differs(moment: Moment, last: Moment, left: list[str]) -> bool:
    """Whether a row is worth it: something changed, or another minute has begun."""
    return bool(
        moment.lines
        or moment.readiness != last.readiness
        or _without(moment.alerts, left) != _without(last.alerts, left)
        or int(moment.at / 60) > max(0, int(last.at / 60))
    )


def _without(alerts: dict[str, str], left: list[str]) -> dict[str, str]:
    return {name: state for name, state in alerts.items() if name not in left}


def cells(moment: Moment, last: Moment, left: list[str]) -> Iterator[str]:
    """Yield the cells of a row, without its time."""
    yield "<br>".join(_readiness(moment, last)) or "all ready"
    yield ", ".join(_metrics(moment.metrics))
    yield "<br>".join(f"{name}: {state}" for name, state in sorted(_without(moment.alerts, left).items()))
    yield "<br>".join(_events(moment.lines))


def _readiness(moment: Moment, last: Moment) -> Iterator[str]:
    for replica, text in moment.readiness.items():
        status = text.partition(" ")[0]
        is_known = last.readiness.get(replica) == text and status.isdigit()
        yield f"{replica}: {status}, as before" if is_known else f"{replica}: {_short(text)}"


def _metrics(values: dict[str, list[float]]) -> Iterator[str]:
    for name, found in values.items():
        if name in ("reader", "publisher"):
            yield f"{name} {found[0]:.0f} s" if found else f"{name} unknown"
        elif name.startswith("active"):
            if found != [1]:
                yield f"{name} {found[0]:.0f}" if found else f"{name} unknown"
        elif name == "backlog":
            if found and found[0] > 2**14:
                yield f"backlog {found[0] / _MIB:.2f} MiB"
        elif name == "storage free":
            if found and found[0] < 2**30:
                yield f"storage free {found[0] / _MIB:.0f} MiB"
        elif found and found[0] and name != "generations":
            yield f"{name} {found[0]:.0f}"


def _events(lines: list[Line]) -> Iterator[str]:
    for (replica, event), often in Counter((line.replica, line.event) for line in lines).items():
        yield f"{replica} `{event}`" + (f" × {often}" if often > 1 else "")


def _short(text: str) -> str:
    text = text.replace("|", "\\|")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def clock(seconds: float) -> str:
    """Return a time as minutes and seconds."""
    return f"{int(seconds // 60)}:{int(seconds % 60):02}"
