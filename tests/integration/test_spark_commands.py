"""What operators ask for: a comparison with the database, a new load, and maintenance."""

import asyncio

import pytest
from deltalake import DeltaTable
from prometheus_client import REGISTRY

from common.spark import leaves_sockets
from common.waiting import cancelled, eventually
from databus.errors import UsageError
from databus.log_events import LogEvent
from databus.manifest import State
from databus.settings import Maintain
from databus_spark_sink import service
from databus_spark_sink.resync import resync
from databus_spark_sink.verify import verify
from integration.sink import DELETE, INSERT, ITEMS, Sink

pytestmark = leaves_sockets


@pytest.mark.lake
async def test_an_operator_has_a_table_loaded_again_beside_the_stream(
    sink: Sink, capsys: pytest.CaptureFixture[str]
) -> None:
    publisher, dumps = sink.publisher, sink.dumps

    async def resynced(tables: str) -> bool:
        command = asyncio.create_task(
            asyncio.to_thread(resync, sink.spark.newSession(), sink.lake, [tables], wait=True)
        )
        while not command.done():
            await sink.run()
        return await command

    sink.dump({ITEMS: [[b"1", b"wrong"]]})
    await sink.run()
    with pytest.raises(UsageError, match=r"no mirror of shop\.itms"):
        resync(sink.spark, sink.lake, ["shop.itms"], wait=False)

    dumps.requested = ["shop.items"]
    dumps.on_request = [dumps.manifest(publisher.position, {ITEMS: [[b"1", b"one"]]})]
    dumps.meanwhile = lambda: publisher.send((ITEMS, INSERT, [[b"2", b"two"]]))
    assert await resynced("shop.*")
    assert sink.mirror(ITEMS) == [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}]
    assert sink.health.degraded == ""
    output = capsys.readouterr()
    assert output.out == "shop.items: loaded\n"
    assert output.err.startswith("shop.items: waiting for the sink\n")

    failed = dumps.manifest(publisher.position, {}, state=State.FAILED, error="no table matches")
    dumps.on_request, dumps.meanwhile = [failed], None
    assert not await resynced("shop.items")
    assert capsys.readouterr().out == "shop.items: failed: dump dump-3 is failed: no table matches\n"
    assert len(sink.mirror(ITEMS)) == 2


@pytest.mark.parametrize(
    "table_format", ["iceberg", pytest.param("delta", marks=pytest.mark.lake)], indirect=True
)  # Iceberg is faster here; the comparison is the same
async def test_verify_finds_what_differs_from_the_database(sink: Sink, capsys: pytest.CaptureFixture[str]) -> None:
    publisher = sink.publisher
    sink.dump({ITEMS: [[b"1", b"one"], [b"2", b"two"], [b"3", b"three"]]})
    await publisher.send((ITEMS, INSERT, [[b"4", b"four"]]))
    await sink.run()
    same = sink.dumps.manifest(
        publisher.position, {ITEMS: [[b"1", b"one"], [b"2", b"two"], [b"3", b"three"], [b"4", b"four"]]}
    )

    async def go_on() -> None:
        await publisher.send((ITEMS, DELETE, [[b"4", b"four"]]))  # newer than the dump
        await sink.run()

    sink.dumps.on_request, sink.dumps.meanwhile = [same], go_on
    assert await verify(sink.settings, sink.spark, sink.lake, ["shop.*"])
    assert capsys.readouterr().out == "shop.items: equal, 3 rows\n"

    quiet = sink.dumps.manifest(publisher.position, {ITEMS: [[b"1", b"one"], [b"2", b"two"], [b"3", b"three"]]})
    publisher.transaction_number += 1  # of another table
    await publisher.send_progress()
    sink.dumps.on_request, sink.dumps.meanwhile = [quiet], sink.run
    assert await verify(sink.settings, sink.spark, sink.lake, ["shop.*"])
    assert capsys.readouterr().out == "shop.items: equal, 3 rows\n"

    wrong = sink.dumps.manifest(publisher.position, {ITEMS: [[b"1", b"one"], [b"2", b"2"], [b"9", b"nine"]]})
    sink.dumps.on_request, sink.dumps.meanwhile = [wrong], None
    assert not await verify(sink.settings, sink.spark, sink.lake, ["shop.*"])
    assert capsys.readouterr().out == (
        "shop.items: DIFFERS: 3 rows, 1 missing, 1 invented, 1 different; "
        'for instance different {"id":2}; invented {"id":3}; missing {"id":9}\n'
    )


@pytest.mark.lake
async def test_the_sink_compares_and_compacts_its_mirrors_by_itself(
    sink: Sink, caplog: pytest.LogCaptureFixture
) -> None:
    async def differing() -> object:
        return REGISTRY.get_sample_value("databus_sink_verify_differing_rows", {"table": "shop.items"})

    async def is_compacted() -> bool:
        return "OPTIMIZE" in [each["operation"] for each in DeltaTable(sink.lake.mirror("shop", "items")).history()]

    async def has_one_file() -> bool:
        return REGISTRY.get_sample_value("databus_sink_files", {"table": "shop.items"}) == 1

    sink.dump({ITEMS: [[b"1", b"one"]]})
    await sink.publisher.send((ITEMS, INSERT, [[b"2", b"two"]]))  # in a file of its own
    wrong = sink.dumps.manifest(sink.publisher.position, {ITEMS: [[b"1", b"1"], [b"9", b"nine"]]})
    sink.dumps.on_request, sink.dumps.requested = [wrong] * 100, ["shop.items"]
    sink.use(verify=1, maintain=Maintain(interval=1))
    running = asyncio.create_task(
        service.keep_up_to_date(sink.settings, sink.health, sink.spark, sink.lake, until_idle=False)
    )
    assert await eventually(differing, seconds=200) == 3
    if sink.settings.spark.table_format == "delta":  # Iceberg leaves less than five files as they are
        await eventually(is_compacted, seconds=200)
        await eventually(has_one_file, seconds=200)
    await cancelled(running)
    found = [record.fields for record in caplog.records if getattr(record, "event", "") == LogEvent.MIRROR_DIFFERS]
    assert found[0] == {"table": "shop.items"}
    assert sink.health.degraded == "", "nothing is parked for it"
