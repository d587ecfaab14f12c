"""What a program knows of a dump before its first row."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from databus.snapshot import beginning
from databus_binlog import Position
from databus_core.manifest import Chunk, Manifest, Mode, PipelineMoment, State
from databus_core.settings import Settings
from integration.sink_peers import describe_table


async def test_a_table_that_was_created_while_other_tables_of_a_chunked_dump_were_read_is_not_in_it() -> None:
    """The program reads `shop.o*`; `shop.a` was read first, and `shop.other` last."""
    chunks = (
        Chunk(table="shop.a", position=Position("", "b.000001", 100)),
        Chunk(table="shop.orders", position=Position("", "b.000001", 300)),
    )
    manifest = Manifest(
        id="dump-1",
        pipeline="shop",
        state=State.COMPLETE,
        created=datetime.now(UTC),
        mode=Mode.CHUNKED,
        tables=(describe_table("a", "id int(11)"), describe_table("orders", "id int(11)")),
        chunks=chunks,
        passed=PipelineMoment(9, {}),
    )
    source: Any = SimpleNamespace(settings=Settings(name="shop"), tables=["shop.o*"])
    join = (await beginning(source, manifest, {})).join
    assert join
    assert not join.has(5, Position("", "b.000001", 200))  # the CREATE and the rows of shop.other
    assert join.chunked.keys() == {"shop.orders"}
