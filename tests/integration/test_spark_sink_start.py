"""The sink's start: it requests and downloads a dump, and reports what is missing."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import msgspec
import pytest
import yaml

from common.waiting import eventually
from databus_binlog import Position
from databus_core.dump_client import DumpApi
from databus_core.errors import DumpApiUnavailable, DumpUnusable
from databus_core.log_events import LogEvent
from databus_core.manifest import State
from integration.sink_peers import DumpServer, describe_table, serving

ITEMS = describe_table("items", "id int(11)", "name varchar(20)")


@pytest.fixture
def dumps(tmp_path: Path) -> DumpServer:
    return DumpServer(tmp_path, "shop")


@pytest.fixture
async def api(dumps: DumpServer) -> AsyncIterator[DumpApi]:
    async with serving(dumps) as url, DumpApi(url, poll=0.01) as api:
        yield api


async def test_the_client_waits_for_a_requested_dump(dumps: DumpServer, api: DumpApi) -> None:
    complete = dumps.manifest(Position(file="bin.000001", offset=4), {ITEMS: [[b"1", b"one"]]})
    unfinished = [msgspec.structs.replace(complete, state=state) for state in (State.PENDING, State.RUNNING)]
    dumps.on_request = [*unfinished, complete]
    assert await api.take(["shop.*"]) == complete

    failed = msgspec.structs.replace(complete, state=State.FAILED, error="shop.items was changed by DDL")
    dumps.on_request = [failed, failed, failed]
    with pytest.raises(DumpUnusable, match=r"dump-1 is failed: shop\.items was changed by DDL"):
        await api.take(["shop.*"])


async def test_an_interrupted_download_is_resumed_and_verified(dumps: DumpServer, api: DumpApi, tmp_path: Path) -> None:
    rows = [[b"%d" % number, b"x" * 20] for number in range(100)]
    manifest = dumps.manifest(Position(file="bin.000001", offset=4), {ITEMS: rows})
    (file,), path = manifest.files, tmp_path / "part"
    content = (tmp_path / manifest.id / file.name).read_bytes()
    path.write_bytes(content[:50])

    async with api.leased(manifest.id):
        await api.download(manifest.id, file, path)
        assert path.read_bytes() == content
        assert dumps.ranges == ["bytes=50-"]

        path.write_bytes(b"?" + content[1:])
        await api.download(manifest.id, file, path)
        assert path.read_bytes() == content, "what was damaged here is downloaded again"

        for damaged in (path, tmp_path / manifest.id / file.name):
            damaged.write_bytes(b"?" + content[1:])
        with pytest.raises(DumpUnusable, match=f"{file.name} differs from its manifest"):
            await api.download(manifest.id, file, path)
        assert not path.exists(), "the next attempt downloads it again"
    assert dumps.leases == ["taken dump-1", "released dump-1"]


async def test_a_lease_that_cannot_be_renewed_is_logged_once(
    dumps: DumpServer, api: DumpApi, caplog: pytest.LogCaptureFixture
) -> None:
    dumps.lease_ttl = 0.03
    async with api.leased("dump-1"):
        for _ in range(3):
            await dumps.renewals.get()
    logged = [(record.event, record.fields) for record in caplog.records if record.name.startswith("databus")]
    assert logged == [(LogEvent.LEASE_NOT_RENEWED, {"dump": "dump-1"})]


async def test_an_expired_lease_is_replaced(dumps: DumpServer, api: DumpApi, caplog: pytest.LogCaptureFixture) -> None:
    dumps.lease_ttl = 0.03
    dumps.renewal_answers = [200, 404, 200]
    async with api.leased("dump-1"):
        for _ in range(3):
            await dumps.renewals.get()
    assert dumps.leases == ["taken dump-1", "taken dump-1", "released dump-1"]
    (record,) = (record for record in caplog.records if record.name.startswith("databus"))
    assert (record.event, record.fields) == (LogEvent.LEASE_NOT_RENEWED, {"dump": "dump-1"})


async def test_the_loss_of_a_deleted_dump_s_lease_is_logged(
    dumps: DumpServer, api: DumpApi, caplog: pytest.LogCaptureFixture
) -> None:
    dumps.lease_ttl = 0.03
    dumps.renewal_answers = [404]

    async def logged() -> list[str]:
        return [record.getMessage() for record in caplog.records if record.name.startswith("databus")]

    async with api.leased("dump-1"):
        dumps.lease_answer = 404
        assert "the lease is lost" in (await eventually(logged))[0]
    assert len(await logged()) == 1


async def test_a_reader_that_is_cancelled_while_it_gives_up_its_lease_ends(
    dumps: DumpServer, api: DumpApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopping, go_on = asyncio.Event(), asyncio.Event()

    async def renew(*_: object) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopping.set()
            await go_on.wait()

    async def read() -> None:
        async with api.leased("dump-1"):
            await asyncio.sleep(0)

    monkeypatch.setattr(api, "_renew", renew)
    task = asyncio.create_task(read())
    await stopping.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()


def inode(path: Path) -> int:
    return path.stat().st_ino


async def test_a_download_is_on_disk_when_it_is_complete(
    dumps: DumpServer, api: DumpApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = dumps.manifest(Position(file="bin.000001", offset=4), {ITEMS: [[b"1", b"one"]]})
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    async with api.leased(manifest.id):
        await api.download(manifest.id, manifest.files[0], tmp_path / "part")
    assert synced == [inode(tmp_path / "part"), inode(tmp_path)]


async def test_a_busy_dump_api_counts_as_unavailable() -> None:
    busy = httpx.MockTransport(lambda _: httpx.Response(429, json={"detail": "10 requests are waiting"}))
    async with DumpApi("http://dumps") as api:
        api._http = httpx.AsyncClient(transport=busy, base_url="http://dumps")
        with pytest.raises(DumpApiUnavailable, match="10 requests are waiting"):
            await api.take(["shop.*"])


async def test_the_error_for_an_unreachable_dump_api_does_not_contain_the_login() -> None:
    async with DumpApi("http://user:hunter2@127.0.0.1:1") as api:
        with pytest.raises(DumpApiUnavailable, match=r"dump-api http://127\.0\.0\.1:1: .* \(check dumps\.url\)"):
            await api.dumps()


async def test_check_reports_missing_jars_in_one_line(tmp_path: Path) -> None:
    config = tmp_path / "databus.yaml"
    config.write_text(yaml.safe_dump({"name": "shop", "spark": {"jars": str(tmp_path)}}))
    command = [sys.executable, "-m", "databus_spark_sink", "--config", str(config), "--check"]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    _, stderr = await process.communicate()

    assert process.returncode == 78
    (line,) = stderr.decode().splitlines()
    assert f"spark.jars: {tmp_path} has no spark-sql-kafka*.jar, the connector for Kafka" in line
