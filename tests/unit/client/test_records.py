"""Which records are left out: what is done, what a dump has, and copies of statements."""

import json
from base64 import b64encode
from typing import Any

import pytest
from aiokafka import ConsumerRecord

from databus.bookmark import Bookmark, Join, Place
from databus.executed import Executed
from databus.records import RecordReader
from databus.source import Source
from databus_binlog import Position
from databus_core.change_topics import ChangeTopics
from databus_core.errors import InvalidSettings, SchemaMismatch
from databus_core.settings import Settings

TABLE = {"Schema": "shop", "Name": "t", "Columns": [{"Name": "id", "RawType": "int(11)"}], "PKColumns": [0]}
ROW = {"Table": TABLE, "Action": "insert", "Rows": [[b64encode(b"1").decode()]]}
ALTER = {"Table": TABLE, "Action": "alter", "Query": b64encode(b"ALTER TABLE t").decode()}


def reader(**more: Any) -> RecordReader:
    settings = Settings(name="p")
    source = Source(settings, None, ["shop.*"], ChangeTopics(settings, ["shop.*"]))  # type: ignore[arg-type]
    return RecordReader(source, Bookmark(pipeline="p", tables=["shop.*"], **({"offsets": {}} | more)))


async def is_read(
    by: RecordReader, transaction: int, message: Any = ROW, *, partition: int = 0, position: int = 500
) -> bool:
    key = json.dumps({"Pos": {"Name": "b.000001", "Pos": position}, "Action": "DML"}).encode()
    value, place = json.dumps(message).encode(), ("p.shop.t", partition, 7, 0, 0)
    record = ConsumerRecord(*place, key, value, None, 0, 0, ())
    return bool(await by.blocks(f"{transaction:016d}-0000000001" if transaction else "", record))


async def test_a_topic_that_is_new_in_a_transaction_of_which_a_part_is_done_is_read() -> None:
    resumed = reader(sequence=f"{5:016d}-0000000000", offsets={"p.shop.other": {0: 8}})
    assert [await is_read(resumed, transaction) for transaction in (5, 6)] == [True, True]


async def test_what_is_before_the_start_is_left_out_also_if_it_comes_late() -> None:
    assert [await is_read(reader(after=5), transaction) for transaction in (4, 5, 6)] == [False, False, True]


async def test_what_the_dump_has_is_left_out() -> None:
    joined = reader(join=Join(Position("", "b.000001", 500), 5))
    assert [await is_read(joined, 5, position=each) for each in (500, 501)] == [False, True]
    assert await is_read(joined, 6, position=4)  # after a failover, positions are those of another server


async def test_a_record_without_a_gtid_ends_a_start_among_the_transactions_of_a_commit() -> None:
    started = reader(after=5, executed=Executed("0-1-7", until=8, before="0-1-5"))
    assert [await is_read(started, transaction) for transaction in (5, 9)] == [False, True]
    with pytest.raises(InvalidSettings, match="transaction 8 does not say its GTID, as in format databus"):
        await is_read(started, 8)


async def test_gtids_in_records_show_what_a_start_has() -> None:
    started = reader(after=5, executed=Executed("0-1-7", until=8, before="0-1-5"))
    row = {"data": [{"id": "1"}], "database": "shop", "isDdl": False, "sql": "", "table": "t", "type": "INSERT"}
    found = [await is_read(started, each, row | {"gtid": f"0-1-{each}"}) for each in (7, 8, 9)]
    assert found == [False, True, True]


async def test_a_statement_is_read_once_also_if_the_start_is_between_two_copies() -> None:
    first = reader()
    assert [await is_read(first, 5, ALTER, partition=each) for each in (0, 1, 2)] == [True, False, False]
    record_digest = next(iter(first._statements))
    resumed = reader(sequence=f"{5:016d}-0000000001", statements=[record_digest])
    assert not await is_read(resumed, 5, ALTER, partition=1)
    assert await is_read(resumed, 6, ALTER, partition=1)


async def test_a_letter_that_is_done_ahead_of_its_transaction_is_left_out() -> None:
    resumed = reader(ahead=[Place("p.shop.t", 1, 7)])
    assert [await is_read(resumed, 5, partition=each) for each in (0, 1)] == [True, False]


async def test_a_record_without_a_sequence_is_an_error() -> None:
    with pytest.raises(SchemaMismatch, match=r"topic p\.shop\.t, partition 0, offset 7: the record has no sequence"):
        await is_read(reader(), 0)
