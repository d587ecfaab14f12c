"""Redis may lose anything at any time: the pipeline resumes from the progress in Kafka; no row is lost or repeated."""

from pathlib import Path

from devstack import Stack
from devstack.replication import Pair
from faults.catalogue import FAULTS
from faults.storm import storm


async def test_no_row_is_lost_or_repeated_when_redis_forgets(mariadb_pair: Pair, own: Stack, tmp_path: Path) -> None:
    """Four faults in the order given by the seed: Redis is restarted, flushed, back empty, back with an old state."""
    kinds = [fault for fault in FAULTS if fault.name.startswith("Redis: ") and "SIGSTOP" not in fault.name]
    done = await storm(tmp_path, mariadb_pair, own, 1, len(kinds), kinds)
    assert not done.failure
    assert len(done.faults) == len(kinds) == 4
    assert not done.ends
