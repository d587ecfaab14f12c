"""A lake of 200 tables."""

import pytest

from common.spark import leaves_sockets
from integration.sink import ALTER, INSERT, UPDATE, Sink
from integration.sink_peers import describe_table

pytestmark = [pytest.mark.lake, leaves_sockets]


async def test_one_of_200_tables_is_parked_and_the_others_are_right(sink: Sink) -> None:
    tables = [describe_table(f"t{number:03}", "id int(11)", "at time") for number in range(200)]
    sink.dump({table: [[b"1", b"00:00:01"]] for table in tables})
    one, retyped = tables[57], describe_table("t057", "id int(11)", "at time(3)")
    await sink.publisher.send(*((table, INSERT, [[b"2", b"00:00:02"]]) for table in tables))
    await sink.publisher.send((retyped, ALTER, b"ALTER TABLE t057 MODIFY at time(3)"))
    updates = [
        (retyped if table is one else table, UPDATE, [[b"1", b"00:00:01"], [b"1", b"00:00:09"]]) for table in tables
    ]
    await sink.publisher.send(*updates)

    await sink.run()

    assert sink.health.degraded == "parked: shop.t057"
    right = [{"id": 1, "at": "00:00:09"}, {"id": 2, "at": "00:00:02"}]
    assert [table.name for table in tables if sink.mirror(table) != right] == ["t057"]
    assert sink.mirror(one) == [{"id": 1, "at": "00:00:01"}, {"id": 2, "at": "00:00:02"}], "it is as it was before"
