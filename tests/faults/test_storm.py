"""Faults of many kinds, one after the other, while clients request backfills; `make faults` is the long form."""

from pathlib import Path

import pytest

from devstack import Stack
from devstack.replication import Pair
from faults.catalogue import FAULTS
from faults.storm import storm

pytestmark = pytest.mark.mysql_in_slow

_SEED = 20


async def test_every_change_arrives_once_whatever_happens(pair: Pair, own: Stack, tmp_path: Path) -> None:
    done = await storm(tmp_path, pair, own, _SEED, 8, [fault for fault in FAULTS if fault.quick])
    assert not done.failure
    assert done.loaded_rows
    assert sum(map(len, done.faults.values())) == 8
