"""dump-api on a volume without free space: it refuses new dumps, serves and deletes those that it has, and recovers."""

import errno
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from common.connections import Execute
from common.waiting import eventually
from databus_core.log_events import LogEvent
from integration.dump_api import Api, path_of

pytestmark = pytest.mark.parametrize("source", ["mariadb"], indirect=True)


@pytest.fixture(autouse=True)
def _often_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("databus_dump_api.__main__._CHECK_SECONDS", 0.1)


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB."""
    folder = tmp_path / "volume"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if subprocess.run(mount, check=False).returncode:
        pytest.fail("this test mounts a tmpfs of 4 MiB: run it as root, in a container with CAP_SYS_ADMIN")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def fill(volume: Path) -> None:
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)), (volume / "others").open("ab", buffering=0) as file:
        while True:
            file.write(bytes(4096))


async def ready(api: Api) -> bool:
    return (await api.get("/readyz")).is_success


async def until_full(volume: Path, api: Api) -> None:
    """Fill the volume; again if dump-api, which tries to get space from time to time, had some of it meanwhile."""

    async def full() -> bool:
        fill(volume)
        return not await ready(api)

    await eventually(full)


async def has_free_bytes(api: Api, number: int) -> bool:
    """Return whether the metric shows at least this many free bytes."""
    lines = (await api.get("/metrics")).text.splitlines()
    (line,) = (line for line in lines if line.startswith("databus_dump_storage_free_bytes"))
    return float(line.split()[1]) >= number


@pytest.fixture
async def large_table(execute: Execute, schema: str) -> str:
    """A table whose rows take 1 MB, also compressed."""
    await execute("CREATE TABLE large (id INT AUTO_INCREMENT PRIMARY KEY, noise BLOB)")
    rows = ", ".join(["(RANDOM_BYTES(1000))"] * 1000)
    await execute(f"INSERT INTO large (noise) VALUES {rows}")
    return f"{schema}.large"


async def test_on_a_full_volume_dumps_are_refused_and_deleting_one_frees_it(
    serve: Callable[..., Any], volume: Path, large_table: str, caplog: pytest.LogCaptureFixture
) -> None:
    storage = {"storage": f"file://{volume}"}
    async with serve(dumps=storage) as api:
        dump = await api.take_dump()
        await until_full(volume, api)
        answer = await api.post("/v1/dumps", json={})
        assert (answer.status_code, answer.headers["Content-Type"]) == (507, "application/problem+json")
        full = f"the volume is full: {volume} needs 1048576 bytes, "
        assert full in answer.json()["detail"]
        assert full in (await api.get("/readyz")).text
        assert not await has_free_bytes(api, 2**20)
    (line,) = [record for record in caplog.records if record.event is LogEvent.DEPENDENCY_LOST]
    assert full in line.getMessage()
    assert line.fields == {"dependency": "storage"}

    async with serve(started=False, dumps=storage) as api:
        assert not await ready(api)
        file = dump["files"][0]
        assert len((await api.get(path_of(dump, file["name"]))).content) == file["bytes"]
        assert (await api.delete(f"/v1/dumps/{dump['id']}")).status_code == 204
        assert names_in(volume) == ["others"]
        await eventually(lambda: has_free_bytes(api, file["bytes"]))
        (volume / "others").unlink()
        await eventually(lambda: ready(api))
        await api.take_dump()


async def test_a_dump_that_does_not_fit_fails_and_leaves_nothing_on_the_volume(
    serve: Callable[..., Any], volume: Path, large_table: str, execute: Execute, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        await execute("INSERT INTO large (noise) SELECT RANDOM_BYTES(1000) FROM large")
    async with serve(dumps={"storage": f"file://{volume}", "part_size": "2MiB"}) as api:
        dump = await api.take_dump(state="failed")
        assert re.search(rf"the volume is full: {volume}/{dump['id']}/\S+/{large_table}\.", dump["error"])
        assert names_in(volume / dump["id"]) == ["manifest.json"]
        await eventually(lambda: ready(api))
        await execute("TRUNCATE large")
        await api.take_dump()
    (line,) = [record for record in caplog.records if record.event is LogEvent.DUMP_FAILED]
    assert dump["error"] in line.getMessage()
