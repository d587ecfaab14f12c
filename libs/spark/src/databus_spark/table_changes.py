"""What a part of the change log has of each table: its statements, in order, and which row images there are."""

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from databus_changes.ddl.statement import parse_statement
from databus_changes.ddl.token import UnreadableStatement
from databus_changes.tables import TableName
from databus_core.definitions import decode_definition
from databus_core.events import Table
from databus_spark.sequences import transaction_of


class Statement(msgspec.Struct, frozen=True):
    """A statement on a table, or a record that could not be used."""

    sequence: str
    action: str
    #: text of the statement, or why the record could not be used
    query: str
    #: version of the definition after it
    version: int
    topic: str
    partition: int
    offset: int

    @property
    def transaction(self) -> int:
        """Ordinal of the statement's transaction."""
        return transaction_of(self.sequence)

    @property
    def is_reset(self) -> bool:
        """Whether the table has no rows after it, whatever was before."""
        if self.action == "create":
            return not _is_conditional(self.query)
        return self.action in {"truncate", "drop"}

    @property
    def place(self) -> str:
        """Where the record is in Kafka."""
        return f"topic {self.topic}, partition {self.partition}, offset {self.offset}"


class Images(msgspec.Struct, frozen=True):
    """Row images with one version of the definition."""

    version: int
    count: int
    #: ordinals of the transactions of the first and the last one
    first: int
    last: int
    #: partitions of topics that they are from
    partitions: int


class TableChanges(msgspec.Struct, frozen=True):
    """What a part of the change log has of a table."""

    #: in order
    statements: list[Statement] = []
    #: version → definition
    definitions: dict[int, Table] = {}
    images: list[Images] = []

    @property
    def first(self) -> int:
        """Ordinal of the first transaction that the table has something in. There must be one."""
        statements = [each.transaction for each in self.statements[:1]]
        return min(statements + [each.first for each in self.images])


def table_changes(entries: DataFrame) -> dict[TableName, TableChanges]:
    """Return what entries of the change log have of each table.

    Records whose table is not known are under ("", "").
    """
    groups = entries.groupBy("_schema", "_table", "_version").agg(
        sql.max("_definition"),
        sql.expr(
            "collect_set(struct(_seq, _action, _query, coalesce(_version, 0), _topic, _partition, _offset)) "
            "filter (where _query is not null)"
        ),
        sql.expr("count_if(_query is null)"),
        sql.expr("min(_seq) filter (where _query is null)"),
        sql.expr("max(_seq) filter (where _query is null)"),
        sql.expr("size(collect_set(struct(_topic, _partition)) filter (where _query is null))"),
    )
    found: dict[TableName, TableChanges] = {}
    for schema, table, version, definition, statements, images, first, last, partitions in groups.collect():
        changes = found.setdefault((schema or "", table or ""), TableChanges([], {}, []))
        if definition:
            changes.definitions[version] = decode_definition(definition)
        if images:
            changes.images.append(Images(version, images, transaction_of(first), transaction_of(last), partitions))
        changes.statements.extend(Statement(*row) for row in statements)
    for changes in found.values():
        changes.statements[:] = in_order(changes.statements)
    return found


def in_order(statements: list[Statement]) -> list[Statement]:
    """Return statements in order, without the copies that each partition of a topic has.

    CREATE OR REPLACE TABLE has two messages with one sequence, DROP and CREATE. Their offsets in the same partition
    have their order.
    """
    found: dict[object, Statement] = {}
    for each in sorted(statements, key=lambda each: (each.sequence, each.partition, each.offset)):
        is_copied = each.action != "invalid"
        found.setdefault((each.sequence, each.action, each.version) if is_copied else each, each)
    return list(found.values())


def _is_conditional(query: str) -> bool:
    """Return whether a CREATE TABLE does nothing if the table exists."""
    try:
        keywords = [token.keyword for token in parse_statement(query, "").tokens]
    except UnreadableStatement:  # a table that is emptied by mistake would be silently wrong
        return "if not exists" in " ".join(query.lower().split())
    return keywords[keywords.index("TABLE") + 1 :][:3] == ["IF", "NOT", "EXISTS"] if "TABLE" in keywords else False
