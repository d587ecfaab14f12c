"""Redis may lose anything at any time: the pipeline resumes at Kafka's progress; nothing is lost or repeated."""

from pathlib import Path

from devstack import Stack
from devstack.replication import Pair
from faults.catalogue import FAULTS
from faults.storm import storm


async def test_a_redis_that_forgets_loses_and_repeats_nothing(mariadb_pair: Pair, own: Stack, tmp_path: Path) -> None:
    """Flushed, back empty, back with an old state as after a failover that lost writes, and killed."""
    kinds = [fault for fault in FAULTS if fault.name.startswith("Redis: ") and "SIGSTOP" not in fault.name]
    done = await storm(tmp_path, mariadb_pair, own, 1, len(kinds), kinds)
    assert not done.failure
    assert len(done.faults) == len(kinds) == 4
    assert not done.ends
