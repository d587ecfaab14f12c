"""The condition of `--where`: which rows are printed. It is tested as the conditions of `publisher.routes` are."""

import re
from collections.abc import Iterator, Sequence

import msgspec

from databus_binlog import Value
from databus_core.errors import InvalidSettings, PoisonError
from databus_core.events import Row, Table, is_absent
from databus_core.settings.rules import Condition
from databus_messages.formats.columns import BINARY, SPATIAL, UUID_AND_INET
from databus_messages.routing.conditions import RowTest, conditions

_TOKEN = re.compile(
    r"""\s*(?: (?P<name>[^\W\d]\w*|@\d+) | `(?P<quoted>[^`]+)` | (?P<number>-?\d+(?:\.\d+)?(?![\w.]))
    | '(?P<single>(?:[^']|'')*)' | "(?P<double>[^"]*)" | (?P<sign>!=|<>|[=(),]) )\s*""",
    re.VERBOSE,
)
_FORM = "write COLUMN = VALUE, !=, [NOT] IN (VALUE, …) or IS [NOT] NULL, joined by AND"
_BYTES = BINARY | SPATIAL | UUID_AND_INET.keys() | {"vector"}


class Where:
    """Tests rows. Names of columns are compared without case. Raises ValueError if the text is no condition."""

    def __init__(self, text: str) -> None:
        self._conditions = list(_Parser(text).conditions())
        self._tests: dict[str, RowTest | None] = {}
        #: why the first table that was read does not fit; empty if a table does
        self.misfit: str | None = None

    def meets(self, table: Table, image: Sequence[Value]) -> bool:
        """Return whether a row image meets the condition. It does not if it or its table lacks a column."""
        if table.fingerprint not in self._tests:
            self._tests[table.fingerprint] = self._test(table)
        test = self._tests[table.fingerprint]
        return test is not None and test(image)  # type: ignore[arg-type]  # ABSENT is tested first

    def _test(self, table: Table) -> RowTest | None:
        try:
            fitting = [_named_as_in(table, condition) for condition in self._conditions]
            test = conditions(fitting, _with_numbers(table))
        except InvalidSettings as error:
            self.misfit = f"{table.full_name}: {error}" if self.misfit is None else self.misfit
            return None
        self.misfit = ""
        names = {condition.column for condition in fitting}
        indexes = [index for index, column in enumerate(table.columns) if column.name in names]

        def complete(row: Row) -> bool:
            try:
                return not any(is_absent(row[index]) for index in indexes) and test(row)
            except PoisonError:  # a value is ABSENT
                return False

        return complete


def _named_as_in(table: Table, condition: Condition) -> Condition:
    for column in table.columns:
        if column.name.lower() == condition.column.lower():
            if column.type in _BYTES and condition.is_null is None:
                raise InvalidSettings(f"column {column.name} has bytes; only IS NULL is possible")
            return condition.model_copy(update={"column": column.name})
    raise InvalidSettings(f"there is no column {condition.column}")


def _with_numbers(table: Table) -> Table:
    """Return a table whose ENUM and SET columns without known labels are numbers, as they are printed."""
    columns = (
        msgspec.structs.replace(column, type="bigint", raw_type="bigint") if column.lacks_labels else column
        for column in table.columns
    )
    return msgspec.structs.replace(table, columns=tuple(columns))


class _Parser:
    """Reads `test AND test …`."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, str]] = []
        offset = 0
        while offset < len(text):
            found = _TOKEN.match(text, offset)
            if not found:
                raise self._fault()
            self._tokens.append((str(found.lastgroup), found[str(found.lastgroup)]))
            offset = found.end()

    def conditions(self) -> Iterator[Condition]:
        yield from self._comparison()
        while self._tokens:
            self._expect("AND")
            yield from self._comparison()

    def _comparison(self) -> Iterator[Condition]:
        kind, column = self._next()
        if kind not in {"name", "quoted"}:
            raise self._fault()
        negated = self._take("NOT")
        if self._take("IS") and not negated:
            negated = self._take("NOT")
            self._expect("NULL")
            yield Condition(column=column, is_null=not negated)
            return
        if self._take("IN"):
            values: list[str | int] = [*self._list()]
        elif not negated and (self._take("!=") or self._take("<>")):
            negated, values = True, [self._value()]
        elif not negated and self._take("="):
            values = [self._value()]
        else:
            raise self._fault()
        if negated:  # as in SQL, NULL meets neither a comparison nor its opposite
            yield Condition(column=column, is_null=False)
            yield Condition(column=column, not_in=values)
        else:
            yield Condition.model_validate({"column": column, "in": values})

    def _list(self) -> Iterator[str]:
        self._expect("(")
        yield self._value()
        while self._take(","):
            yield self._value()
        self._expect(")")

    def _value(self) -> str:
        kind, text = self._next()
        if kind not in {"number", "single", "double"}:
            raise self._fault()
        return text.replace("''", "'") if kind == "single" else text

    def _next(self) -> tuple[str, str]:
        if not self._tokens:
            raise self._fault()
        return self._tokens.pop(0)

    def _take(self, word: str) -> bool:
        found = bool(self._tokens) and self._tokens[0][0] in {"name", "sign"} and self._tokens[0][1].upper() == word
        if found:
            self._tokens.pop(0)
        return found

    def _expect(self, word: str) -> None:
        if not self._take(word):
            raise self._fault()

    def _fault(self) -> ValueError:
        return ValueError(f"{self._text[:200]!r} is not a condition: {_FORM}")
