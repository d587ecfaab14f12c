"""A lake of 200 tables."""

from functools import reduce

import pytest
from pyspark.sql import DataFrame

from common.spark import leaves_sockets
from databus_spark.formats import open_table
from integration.sink import ALTER, INSERT, UPDATE, Sink
from integration.sink_peers import describe_table

pytestmark = [pytest.mark.slow, leaves_sockets, pytest.mark.parametrize("table_format", ["iceberg"], indirect=True)]


async def test_one_of_200_tables_is_parked_and_the_others_are_right(sink: Sink) -> None:
    names = [f"t{number:03}" for number in range(200)]
    tables = {name: describe_table(name, "id int(11)", "at time") for name in names}
    retyped = describe_table("t057", "id int(11)", "at time(3)")
    sink.dump({table: [[b"1", b"00:00:01"]] for table in tables.values()})
    await sink.publisher.send(*((table, INSERT, [[b"2", b"00:00:02"]]) for table in tables.values()))
    await sink.publisher.send((retyped, ALTER, b"ALTER TABLE t057 MODIFY at time(3)"))
    update = [[b"1", b"00:00:01"], [b"1", b"00:00:09"]]
    await sink.publisher.send(*((table, UPDATE, update) for table in (tables | {"t057": retyped}).values()))

    await sink.run()

    assert sink.health.degraded == "parked: shop.t057"
    mirrors = (open_table(sink.spark, sink.lake.mirror("shop", name)).read() for name in names)
    rows = reduce(
        DataFrame.union, (each.selectExpr(f"'{name}'", "id", "at") for name, each in zip(names, mirrors, strict=True))
    )
    before, after = [(1, "00:00:01"), (2, "00:00:02")], [(1, "00:00:09"), (2, "00:00:02")]
    expected = [(name, *row) for name in names for row in (before if name == "t057" else after)]
    assert sorted(map(tuple, rows.collect())) == expected
