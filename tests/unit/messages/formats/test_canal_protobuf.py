"""Canal's packets and entries, decoded as a client decodes them, and compared with bytes of canal's own writer."""

from collections.abc import Iterable

import pytest

from databus_binlog import Flavor, Position
from databus_core.errors import PoisonError
from databus_core.events import Action, Begin, Column, Row, Table
from databus_messages.formats import canal_protocol_pb2 as pb
from databus_messages.formats import find
from databus_messages.formats.base import Change, DdlStatement, MessageSource, Record, SnapshotRows, TransactionEnd
from databus_messages.formats.canal import CanalOptions
from databus_messages.formats.canal_protobuf import CanalProtobuf

COLUMNS = (
    Column(name="id", type="int", raw_type="int(11)"),
    Column(name="name", type="varchar", raw_type="varchar(20)", nullable=True),
    Column(name="u", type="bigint", raw_type="bigint unsigned", unsigned=True),
)
TABLE = Table(schema="test", name="t1", columns=COLUMNS, primary_key=(0,))
GTID = "3e11fa47-71ca-11e1-9e33-c80aa9429562:23"
BEGIN = Begin(7, GTID, "mysql-bin.000005", 1, 236, 1_700_000_000_123_456, start=1920, end=1992)


def canal(flavor: Flavor = "mysql") -> CanalProtobuf:
    return CanalProtobuf(MessageSource("shop", flavor, "db1", 3306), CanalOptions())


def change(action: Action, *rows: Row) -> Change:
    return Change(
        TABLE, BEGIN, action, start=2040, end=2080, first=0, ordinals=range(len(rows)), rows=rows, table_id=219
    )


def entries(records: Iterable[Record]) -> list[pb.Entry]:
    (record,) = list(records)
    assert record.key is None
    packet = pb.Packet.FromString(record.value)
    assert (packet.version, packet.type) == (1, pb.MESSAGES)
    return [pb.Entry.FromString(entry) for entry in pb.Messages.FromString(packet.body).messages]


def row_change(records: Iterable[Record]) -> tuple[pb.Header, pb.RowChange]:
    (entry,) = entries(records)
    assert entry.entryType == pb.ROWDATA
    return entry.header, pb.RowChange.FromString(entry.storeValue)


def test_bytes_from_canals_own_writer_can_be_decoded() -> None:
    value = "08db011001500062 1d121b080010041a026964200028013000420231355207696e74283131 29".replace(" ", "")
    known = pb.RowChange.FromString(bytes.fromhex(value))
    (column,) = known.rowDatas[0].afterColumns
    assert (known.tableId, known.eventType, known.isDdl, known.HasField("isDdl")) == (219, pb.INSERT, False, True)
    assert (column.index, column.sqlType, column.name, column.isKey, column.updated) == (0, 4, "id", False, True)
    assert (column.HasField("isNull"), column.value, column.mysqlType) == (True, "15", "int(11)")
    assert pb.TransactionBegin.FromString(bytes.fromhex("20ec01")).threadId == 236
    assert pb.TransactionEnd.FromString(bytes.fromhex("1203313834")).transactionId == "184"


@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
def test_a_transaction_of_either_server_has_a_begin_and_an_end_entry(flavor: Flavor) -> None:
    (begin,) = entries(canal(flavor).begin(BEGIN))
    (end,) = entries(canal(flavor).end(BEGIN, TransactionEnd(184, 2111, 1, start=2080)))
    assert (begin.entryType, end.entryType) == (pb.TRANSACTIONBEGIN, pb.TRANSACTIONEND)
    assert (begin.storeValue.hex(), end.storeValue.hex()) == ("20ec01", "1203313834")
    headers = begin.header, end.header
    assert {header.logfileName for header in headers} == {"mysql-bin.000005"}
    assert [(header.logfileOffset, header.eventLength) for header in headers] == [(1920, 72), (2080, 31)]
    assert not begin.header.HasField("eventType")
    assert not end.header.HasField("eventType")


def test_a_transaction_without_an_xid_has_transaction_id_0() -> None:
    (end,) = entries(canal().end(BEGIN, TransactionEnd(None, 2111, 1)))
    assert pb.TransactionEnd.FromString(end.storeValue).transactionId == "0"


def test_an_insert_marks_every_column_as_updated() -> None:
    header, inserted = row_change(canal().change(change(Action.INSERT, [b"15", None, b"18446744073709551615"])))
    assert (header.logfileName, header.logfileOffset, header.eventLength) == ("mysql-bin.000005", 2040, 40)
    assert (header.version, header.serverId, header.serverenCode, header.sourceType) == (1, 1, "UTF-8", pb.MYSQL)
    assert (header.schemaName, header.tableName, header.eventType) == ("test", "t1", pb.INSERT)
    assert (header.executeTime, header.gtid) == (1_700_000_000_123, BEGIN.gtid)
    assert [(pair.key, pair.value) for pair in header.props] == [("curtGtid", BEGIN.gtid), ("rowsCount", "1")]
    assert (inserted.tableId, inserted.eventType, inserted.isDdl) == (219, pb.INSERT, False)
    assert inserted.HasField("isDdl")
    (row,) = inserted.rowDatas
    assert not row.beforeColumns
    number, name, large = row.afterColumns
    assert number.SerializeToString().hex() == "10041a02696420012801300042023135520769" + b"nt(11)".hex()
    assert (name.index, name.sqlType, name.isNull, name.value, name.updated) == (1, 12, True, "", True)
    assert (large.sqlType, large.value, large.isNull) == (3, "18446744073709551615", False)


def test_an_update_marks_the_changed_columns() -> None:
    _, updated = row_change(canal().change(change(Action.UPDATE, [b"1", b"a", b"5"], [b"1", None, b"5"])))
    (row,) = updated.rowDatas
    assert [column.updated for column in row.beforeColumns] == [False, False, False]
    assert [column.updated for column in row.afterColumns] == [False, True, False]
    assert [column.value for column in row.beforeColumns] == ["1", "a", "5"]
    assert [column.sqlType for column in row.afterColumns] == [4, 12, -5]


def test_a_delete_has_the_before_images() -> None:
    header, deleted = row_change(canal("mariadb").change(change(Action.DELETE, *[[b"1", b"a", b"5"]] * 3)))
    assert [len(row.beforeColumns) for row in deleted.rowDatas] == [3, 3, 3]
    assert not any(row.afterColumns or row.beforeColumns[0].updated for row in deleted.rowDatas)
    assert [(pair.key, pair.value) for pair in header.props] == [("rowsCount", "3")]


def test_a_statement_is_an_entry_of_its_own() -> None:
    sql = "alter table `test`.t1 add index (name)"
    header, ddl = row_change(canal().statement(DdlStatement(TABLE, BEGIN, Action.ALTER, sql.encode(), 300, 400)))
    assert (ddl.isDdl, ddl.sql, ddl.ddlSchemaName, ddl.eventType) == (True, sql, "test", pb.CINDEX)
    assert (header.schemaName, header.tableName, header.eventType) == ("test", "t1", pb.CINDEX)


def test_rows_of_a_dump_are_a_transaction_of_inserts() -> None:
    dumped = SnapshotRows(TABLE, Position("u:1-9", "mysql-bin.000005", 4711), 1_000_000, [[b"1", b"a", b"5"]])
    begin, rows, end = entries(canal().snapshot(dumped))
    assert [begin.entryType, rows.entryType, end.entryType] == [pb.TRANSACTIONBEGIN, pb.ROWDATA, pb.TRANSACTIONEND]
    assert (rows.header.eventType, rows.header.logfileOffset, rows.header.gtid) == (pb.INSERT, 4711, "u:1-9")
    assert not begin.header.tableName
    assert list(canal().snapshot(SnapshotRows(TABLE, Position(), 0, []))) == []


def test_the_same_events_encode_to_the_same_bytes() -> None:
    event = change(Action.INSERT, [b"1", "né😀".encode(), b"5"])
    assert list(canal().change(event)) == list(canal().change(event))
    assert find("canal-protobuf") is CanalProtobuf


def test_text_that_is_not_utf8_is_rejected() -> None:
    with pytest.raises(PoisonError, match=r"a row of test\.t1 has a value"):
        canal().change(change(Action.INSERT, [b"1", b"\xff", b"5"]))
