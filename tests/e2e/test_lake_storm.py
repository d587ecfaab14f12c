"""Rows and tables change at random while services are killed: each mirror of the lake still equals its table.

`make faults-lake` is the long form.
"""

from pathlib import Path

from devstack import Server
from devstack.demo.scenario import connectors
from faults.lake_storm import LakeStorm


async def test_every_mirror_equals_its_table_whatever_is_altered_renamed_and_killed(
    mariadb: Server, redis_server: Server, kafka: Server, tmp_path: Path
) -> None:
    storm = LakeStorm(tmp_path / "storm", (mariadb, redis_server, kafka), connectors(), seed=3, partitions=2)
    try:
        await storm.prepare()
        await storm.round(60, 6, pause=0.05, catch_up=5)
    finally:
        await storm.close()
    assert storm.report.failures == []
    assert storm.report.ddl.total() > 3
    assert storm.report.rows
