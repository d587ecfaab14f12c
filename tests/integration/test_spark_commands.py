"""What operators ask for: a comparison with the database, a new load, and maintenance."""

import asyncio
import os
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable

from common.spark import leaves_sockets
from common.waiting import cancelled, eventually
from databus_core.errors import DumpRefused, UsageError
from databus_core.log_events import LogEvent
from databus_core.manifest import State
from databus_core.metrics.sink import REGISTRY
from databus_core.settings import Maintain
from databus_spark.folder import Folder
from databus_spark_sink import service
from databus_spark_sink.compare.verify import verify
from databus_spark_sink.resync import resync
from databus_spark_sink.upkeep.command import maintain
from integration.sink import ALTER, CREATE, DELETE, INSERT, ITEMS, Sink
from integration.sink_peers import describe_table

pytestmark = leaves_sockets

RN, RO, LOST = (describe_table(name, "id int(11)", "name varchar(20)") for name in ("rn", "ro", "lost"))
NOTES = describe_table("notes", "id int(11)", "name varchar(20)", key=())
GONE = "shop.rn: the database does not have this table (or it is not captured any more), its mirror has 1 rows"


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
    with pytest.raises(UsageError, match=r"no mirror of shop\.itms\*"):
        resync(sink.spark, sink.lake, ["shop.itms*"], wait=False)
    with pytest.raises(UsageError, match=r"no mirror of items"):
        resync(sink.spark, sink.lake, ["items"], wait=False)

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

    dumps.requested, dumps.on_request = ["shop.ro"], [dumps.manifest(publisher.position, {RO: [[b"1", b"one"]]})]
    assert await resynced("shop.ro"), "the lake has never heard of this table"
    assert sink.mirror(RO) == [{"id": 1, "name": "one"}]


@pytest.mark.parametrize(
    "table_format", ["iceberg", pytest.param("delta", marks=pytest.mark.lake)], indirect=True
)  # Iceberg is faster here; the comparison is the same
@pytest.mark.lake
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

    wrong = sink.dumps.manifest(publisher.position, {ITEMS: [[b"1", b"one"], [b"2", b"2"], [b"10", b"ten"]]})
    sink.dumps.on_request, sink.dumps.meanwhile = [wrong], None
    assert not await verify(sink.settings, sink.spark, sink.lake, ["shop.*"])
    assert capsys.readouterr().out == (
        "shop.items: DIFFERS: 3 rows, 1 missing, 1 invented, 1 different; "
        'for instance different {"id":2}; invented {"id":3}; missing {"id":10}\n'
    )


@pytest.mark.lake
async def test_verify_reports_every_table_that_only_the_database_or_only_the_lake_has(
    sink: Sink, capsys: pytest.CaptureFixture[str]
) -> None:
    """The lake has missed RENAME TABLE rn TO ro, and rows of `lost`."""
    one = [[b"1", b"one"]]
    sink.dump({ITEMS: one, RN: one, NOTES: one})
    await sink.publisher.send((LOST, INSERT, one))
    await sink.run()
    now = sink.dumps.manifest(sink.publisher.position, {ITEMS: one, RO: one, NOTES: one, LOST: one})
    sink.dumps.on_request = [now]
    assert not await verify(sink.settings, sink.spark, sink.lake, ["shop.*"])
    assert capsys.readouterr().out.splitlines() == [
        "shop.items: equal, 1 rows",
        "shop.lost: PARKED, because its earlier rows are not in the lake: "
        "the sink loads it again (with spark.heal: manual, run databus-spark-sink resync shop.lost)",
        "shop.notes: has no primary key, and so no mirror",
        GONE,
        "shop.ro: HAS NO MIRROR: load it with databus-spark-sink resync shop.ro",
    ]
    assert Folder(sink.spark, sink.lake.downloads).names() == []

    sink.dumps.refused = {"shop.rn", "shop.itms"}
    assert not await verify(sink.settings, sink.spark, sink.lake, ["shop.rn"])
    assert capsys.readouterr().out.splitlines() == [GONE]
    sink.dumps.on_request = [sink.dumps.manifest(sink.publisher.position, {ITEMS: one})]
    sink.dumps.requested = ["shop.items"]
    assert not await verify(sink.settings, sink.spark, sink.lake, ["shop.rn", "shop.items"])
    assert capsys.readouterr().out.splitlines() == [GONE, "shop.items: equal, 1 rows"]
    with pytest.raises(DumpRefused, match="no captured and published table"):
        await verify(sink.settings, sink.spark, sink.lake, ["shop.itms"])


@pytest.mark.lake
async def test_verify_does_not_blame_the_lake_for_tables_that_are_created_or_renamed_meanwhile(
    sink: Sink, capsys: pytest.CaptureFixture[str]
) -> None:
    publisher, one = sink.publisher, [[b"1", b"one"]]
    sink.dump({RN: one})
    await sink.run()
    await publisher.send((ITEMS, CREATE, b"CREATE TABLE items (id int PRIMARY KEY, name varchar(20))"))
    await publisher.send((ITEMS, INSERT, one))  # the sink has not read it yet
    sink.dumps.on_request = [sink.dumps.manifest(publisher.position, {RN: one, ITEMS: one})]

    async def run_later() -> None:
        await asyncio.sleep(3)
        await sink.run()

    verifying = verify(sink.settings, sink.spark.newSession(), sink.lake, ["shop.*"])
    assert (await asyncio.gather(verifying, run_later()))[0]
    assert capsys.readouterr().out.splitlines() == ["shop.items: equal, 1 rows", "shop.rn: equal, 1 rows"]

    async def go_on() -> None:
        await publisher.statement(b"RENAME TABLE rn TO ro", (RN, ALTER), (RO, ALTER))
        await sink.run()

    sink.dumps.on_request = [sink.dumps.manifest(publisher.position, {RN: one, ITEMS: one})]
    sink.dumps.meanwhile = go_on
    assert await verify(sink.settings, sink.spark, sink.lake, ["shop.*"])
    assert capsys.readouterr().out.splitlines() == [
        "shop.items: equal, 1 rows",
        "shop.rn: not compared, because it was created, dropped or renamed meanwhile",
        "shop.ro: not compared, because it was created, dropped or renamed meanwhile",
    ]


@pytest.mark.lake
async def test_maintain_removes_what_a_command_that_was_killed_left_a_day_ago(sink: Sink) -> None:
    def leave(name: str, age: float) -> None:
        folder.inside(name).write("part", "rows")
        moment = time.time() - age
        os.utime(Path(folder.path.removeprefix("file://")) / name / "part", (moment, moment))

    sink.dump({ITEMS: [[b"1", b"one"]]})
    await sink.run()
    folder = Folder(sink.spark, sink.lake.downloads)
    leave("killed", 2 * 86_400)
    leave("running", 60)
    assert maintain(sink.spark, sink.lake, Maintain())
    assert folder.names() == ["running"]


@pytest.mark.lake
async def test_the_sink_compares_and_compacts_its_mirrors_by_itself(
    sink: Sink, caplog: pytest.LogCaptureFixture
) -> None:
    async def differing() -> list[float] | None:
        found = [
            REGISTRY.get_sample_value("databus_sink_verify_differing_rows", {"table": table})
            for table in ("shop.items", "shop.rn", "shop.ro")
        ]
        return None if None in found else found  # type: ignore[return-value]

    async def is_compacted() -> bool:
        return "OPTIMIZE" in [each["operation"] for each in DeltaTable(sink.lake.mirror("shop", "items")).history()]

    async def has_one_file() -> bool:
        return REGISTRY.get_sample_value("databus_sink_files", {"table": "shop.items"}) == 1

    sink.dump({ITEMS: [[b"1", b"one"]], RN: [[b"1", b"one"], [b"2", b"two"]]})
    await sink.publisher.send((ITEMS, INSERT, [[b"2", b"two"]]))  # in a file of its own
    wrong = sink.dumps.manifest(sink.publisher.position, {ITEMS: [[b"1", b"1"], [b"9", b"nine"]], RO: [[b"1", b"one"]]})
    sink.dumps.on_request = [wrong] * 100
    sink.use(verify=1, maintain=Maintain(interval=1))
    running = asyncio.create_task(
        service.keep_up_to_date(sink.settings, sink.health, sink.spark, sink.lake, until_idle=False)
    )
    assert await eventually(differing, seconds=200) == [3, 2, 1]
    if sink.settings.spark.table_format == "delta":  # Iceberg leaves less than five files as they are
        await eventually(is_compacted, seconds=200)
        await eventually(has_one_file, seconds=200)
    await cancelled(running)
    found = [record.fields for record in caplog.records if getattr(record, "event", "") == LogEvent.MIRROR_DIFFERS]
    assert [each["table"] for each in found[:3]] == ["shop.items", "shop.rn", "shop.ro"]
    assert sink.health.degraded == "", "nothing is parked for it"
