"""Statements as a server logs them, and what is published of each, for tests of the StatementReader."""

from databus_binlog import Flavor
from databus_binlog.events import Query
from databus_changes.ddl.dialect import Dialect
from databus_changes.statements import StatementReader
from databus_changes.tracker import TableTracker
from databus_core.errors import StatementFormat
from databus_core.kafka_history import SchemaHistory
from databus_core.settings import Source

SOURCE = Source(include=["shop.*", "club.member"], exclude=["shop.audit"])
#: the outcome of a statement of which nothing is published; other outcomes: STOP, or a list of `action schema.table`
NOTHING: list[str] = []
#: the outcome of a statement that stops the reader: its error
STOP = StatementFormat


def no_tables(*, flavor: Flavor = "mysql", folds_names: bool = False) -> TableTracker:
    dialect = Dialect(flavor=flavor, integer_widths=False, folds_names=folds_names)
    return TableTracker(SchemaHistory(), dialect, lookup=None, tracks=SOURCE.captures_some)


def published(statements: StatementReader, event: Query) -> list[str]:
    ddl = statements.read(event)
    return [f"{change.action} {'.'.join(change.table)}" for change in ddl.captured] if ddl else []


def logged(query: str, schema: str = "shop", thread: int = 1) -> Query:
    return Query(
        time=0, server_id=1, file="binlog.7", start=4, end=9, schema=schema, query=query.encode(), thread_id=thread,
        error_code=0, xid=None,
    )  # fmt: skip
