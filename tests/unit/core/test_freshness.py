"""How old the data behind a stage is said to be, while replicas are active in turn."""

import pytest
from prometheus_client import CollectorRegistry

from databus_core.metrics import freshness as module
from databus_core.metrics.freshness import Freshness


@pytest.fixture
def freshness() -> Freshness:
    return Freshness("reader", CollectorRegistry())  # that of a service remembers what other tests have done


def exported(freshness: Freshness) -> float | None:
    (family,) = freshness.collect()
    return family.samples[0].value if family.samples else None


def test_a_stage_counts_from_its_start_until_it_knows_better_and_goes_on_after_a_retry(
    monkeypatch: pytest.MonkeyPatch, freshness: Freshness
) -> None:
    now = 1000.0
    monkeypatch.setattr(module.time, "time", lambda: now)
    freshness.end()
    assert exported(freshness) is None
    now += 3600
    freshness.begin()
    now += 10
    assert exported(freshness) == 10
    freshness.complete(4100)  # what it reads now is older
    freshness.begin()
    assert exported(freshness) == 510
    freshness.complete(4609)
    assert exported(freshness) == 1


def test_a_stage_grows_older_while_replicas_are_active_in_turn_and_none_gets_anything_done(
    monkeypatch: pytest.MonkeyPatch, freshness: Freshness
) -> None:
    now = 1000.0
    monkeypatch.setattr(module.time, "time", lambda: now)
    freshness.begin()
    freshness.complete(1000)
    for _ in range(20):  # 20 minutes
        freshness.end()
        now += 20
        freshness.end()  # it stands by and looks again and again
        assert exported(freshness) is None
        freshness.begin()
        now += 40
    assert exported(freshness) == 1200
    freshness.end()
    now += 86_400  # the other replica has worked for a day
    freshness.begin()
    assert exported(freshness) == 0
