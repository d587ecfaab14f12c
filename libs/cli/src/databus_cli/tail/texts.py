"""The lines of changes: for people, and as JSON."""

from base64 import b64encode
from collections.abc import Iterator

import msgspec

from databus import Change
from databus_cli.printed_rows import BOLD, DIM, RowPrinter, cut
from databus_cli.tail.images import image_of, typed

_json = msgspec.json.Encoder().encode


class PrettyLines:
    """A block for each transaction."""

    def __init__(self, *, coloured: bool) -> None:
        self._rows = RowPrinter(coloured=coloured)
        self._headed = -1

    def of(self, changes: list[Change]) -> Iterator[str]:
        """Return the lines of changes of one transaction."""
        first = changes[0]
        if first.transaction != self._headed:
            self._headed = first.transaction
            yield ""
            yield self._rows.paint(BOLD, _title(first))
        for change in changes:
            if change.query is not None:
                yield f"  {cut(change.query)}{self._rows.paint(DIM, f'  -- {change.table}')}"
                continue
            table, before, after = typed(change.definition), change.before_text, change.after_text
            images = [image_of(table, texts) for texts in (before, after) if texts is not None]
            yield from self._rows.lines(change.action.value, table, *images)


def _title(change: Change) -> str:
    place = f"{change.position.file}:{change.position.offset}" if change.position else ""
    kind = f"transaction {change.transaction}" if change.transaction else "snapshot"
    return "  ".join(filter(None, [change.time.isoformat(" ", "milliseconds"), kind, place]))


class JsonLines:
    """A line for each change."""

    def of(self, changes: list[Change]) -> Iterator[str]:
        """Return the lines of changes."""
        for change in changes:
            yield _json(_described(change)).decode()


def _described(change: Change) -> dict[str, object]:
    described: dict[str, object] = {"action": change.action, "table": change.table, "transaction": change.transaction}
    described |= {"sequence": change.origin.sequence, "time": change.time, "snapshot": change.is_snapshot}
    if change.position:
        described |= {"file": change.position.file, "end": change.position.offset}
    before, after = _cells(change.before_text), _cells(change.after_text)
    if change.query is not None:
        return described | {"query": change.query}
    if before is not None and after is not None:
        return described | {"before": before, "after": after}
    return described | {"row": before if after is None else after}


def _cells(texts: dict[str, str | bytes | None] | None) -> dict[str, object] | None:
    if texts is None:
        return None
    return {
        name: {"base64": b64encode(text).decode()} if isinstance(text, bytes) else text for name, text in texts.items()
    }
