"""Which events start a transaction, in logs with GTID events and in those of MySQL 5.6 without any."""

from databus_binlog import Gtid, Query, Xid
from databus_binlog.transaction_starts import TransactionStarts

HEAD = (1_700_000_000, 1, "log.1", 4, 90)


def query(text: str) -> Query:
    return Query(*HEAD, "shop", text.encode(), 1, 0, None)


GTID = Gtid(*HEAD, "", False, False, "", 0)
XID = Xid(*HEAD, 1)


def starts(*events: Gtid | Query | Xid) -> list[bool]:
    recognise = TransactionStarts()
    return [recognise.is_start(event) for event in events]


def test_a_gtid_event_starts_a_transaction_or_a_statement() -> None:
    events = [GTID, query("BEGIN"), XID, GTID, query("CREATE TABLE t (id INT)"), GTID]
    assert starts(*events) == [True, False, False, True, False, True]


def test_without_gtid_events_begin_and_statements_outside_of_transactions_are_starts() -> None:
    ddl, savepoint = query("CREATE TABLE t (id INT)"), query("SAVEPOINT s")
    events = [query("BEGIN"), savepoint, XID, ddl, query("BEGIN"), query("COMMIT"), ddl, query("BEGIN")]
    assert starts(*events) == [True, False, False, True, True, False, True, True]
