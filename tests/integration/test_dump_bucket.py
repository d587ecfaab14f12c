"""Dumps and claim checks in S3: taken, served, read by programs, deleted; and S3 is away for a while."""

import asyncio
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import obstore
import pytest
from obstore.store import S3Store

from common.connections import Execute, connected
from common.object_store import ObjectStoreServer
from common.pipelines import MakePipeline
from common.waiting import eventually
from databus import Databus
from databus_core.errors import ObjectStoreUnavailable
from devstack import Server
from integration.dump_api import Api, path_of

Serve = Callable[..., Any]
pytestmark = pytest.mark.parametrize("source", ["mariadb"], indirect=True)


def objects_in(bucket: str, object_store: ObjectStoreServer) -> list[str]:
    store = S3Store.from_url(bucket, client_options={"allow_http": True})
    return sorted(each["path"] for found in obstore.list(store) for each in found)


async def test_a_dump_in_s3_is_served_under_a_lease_and_deleted_as_a_whole(
    serve: Serve, schema: str, execute: Execute, bucket: str, object_store: ObjectStoreServer
) -> None:
    await execute("CREATE TABLE `a/ö` (id INT PRIMARY KEY, v VARCHAR(9))")
    await execute("INSERT INTO `a/ö` SELECT seq, 'é' FROM seq_1_to_3000")
    formats = ["jsonl", "parquet", "canal-json"]
    async with serve(dumps={"storage": bucket, "formats": formats, "part_size": 20_000}) as api:
        manifest = await api.take_dump()
        assert {file["format"] for file in manifest["files"]} == set(formats)
        assert sorted(await api.rows(manifest, f"{schema}.a/ö")) == sorted(
            await api.rows(manifest, f"{schema}.a/ö", "parquet")
        )
        first = manifest["files"][0]
        answer = await api.get(path_of(manifest, first["name"]))
        assert hashlib.sha256(answer.content).hexdigest() == first["sha256"]
        part = await api.get(path_of(manifest, first["name"]), headers={"Range": "bytes=5-9"})
        assert (part.status_code, part.content) == (206, answer.content[5:10])
        lease = (await api.post(f"/v1/dumps/{manifest['id']}/leases")).headers["Location"]
        assert (await api.delete(f"/v1/dumps/{manifest['id']}")).status_code == 409
        assert len(objects_in(bucket, object_store)) == 1 + len(manifest["files"])
        async with serve(started=False, dumps={"storage": bucket}) as other:
            assert len(await other.rows(manifest, f"{schema}.a/ö")) == 3000
        assert (await api.delete(lease)).status_code == 204
        assert (await api.delete(f"/v1/dumps/{manifest['id']}")).status_code == 204
    assert objects_in(bucket, object_store) == []


async def test_wrong_credentials_and_a_missing_bucket_are_told(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, bucket: str
) -> None:
    with pytest.raises(ObjectStoreUnavailable, match=r"^s3://nowhere/dumps/manifests/: there is no such bucket$"):
        async with serve(dumps={"storage": "s3://nowhere/dumps"}):
            pass
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(ObjectStoreUnavailable, match=r": access is denied \(SignatureDoesNotMatch\): check the cred"):
        async with serve(started=False, dumps={"storage": bucket}):
            pass


async def test_an_outage_of_s3_fails_a_running_dump_and_nothing_else(
    serve: Serve, schema: str, execute: Execute, source: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await execute("CREATE TABLE t (id INT PRIMARY KEY)")
    await execute("INSERT INTO t SELECT seq FROM seq_1_to_1000")
    server = ObjectStoreServer(tmp_path)
    server.start()
    try:
        await server.wait()
        server.make_bucket("own")
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        async with serve(dumps={"storage": "s3://own"}) as api, connected(source) as run:
            complete = await api.take_dump()
            await run(f"LOCK TABLES {schema}.t WRITE")
            path = (await api.post("/v1/dumps", json={})).headers["Location"]
            await eventually(lambda: is_in_state(api, path, "running"))
            server.kill()
            await run("UNLOCK TABLES")
            refused = await api.get(path)
            assert (refused.status_code, refused.headers["Retry-After"]) == (503, "5")
            assert "s3://own/manifests" in refused.json()["detail"]
            server.start()
            await server.wait()
            await eventually(lambda: is_in_state(api, path, "failed"))
            assert "s3://own/" in (await api.get(path)).json()["error"]  # the reason, although it was written later
            assert len(await api.rows(complete, f"{schema}.t")) == 1000
            await api.take_dump()
    finally:
        server.kill()


async def is_in_state(api: Api, path: str, state: str) -> bool:
    answer = await api.get(path)
    return answer.status_code == 200 and answer.json()["state"] == state


async def test_a_program_reads_dumps_and_claim_checks_in_s3(
    make_pipeline: MakePipeline, source: Server, schema: str, execute: Execute, bucket: str,
    object_store: ObjectStoreServer,
) -> None:  # fmt: skip
    await execute("CREATE TABLE t (id INT PRIMARY KEY, v MEDIUMTEXT)")
    await execute("INSERT INTO t VALUES (1, 'first')")
    pipeline = make_pipeline(
        source,
        schema,
        publisher={"oversize": "claim_check", "claim_checks": f"{bucket}/claims"},
        dumps={"storage": f"{bucket}/dumps"},
        environment=object_store.environment,
    )
    await asyncio.to_thread(pipeline.start_all, "reader", "publisher", "dump-api")
    async with Databus(pipeline.url("dump-api")) as databus:
        changes = databus.changes(f"{schema}.t")
        found: list[str] = []

        async def follow() -> None:
            async for change in changes:
                found.append(change.after["v"][:5])
                if len(found) == 2:
                    break

        following = asyncio.create_task(follow())
        await eventually(lambda: asyncio.sleep(0, found))
        await execute("INSERT INTO t VALUES (2, REPEAT('large', 400000))")
        await asyncio.wait_for(following, 60)
    assert found == ["first", "large"]
    [claim, *_] = [name for name in objects_in(bucket, object_store) if name.startswith("claims/")]
    assert claim.startswith(f"claims/{pipeline.name}.{schema}.t/")
