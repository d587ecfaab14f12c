"""The metrics that tell how far the lake is behind Kafka."""

import pytest
from prometheus_client import CollectorRegistry

from databus_core.kafka_ends import Offsets
from databus_core.metrics import freshness, sink
from databus_core.metrics.freshness import Freshness
from databus_spark.changelog import LogState
from databus_spark_sink.stream import lag
from databus_spark_sink.stream.cuts import Batch


def batch(starts: Offsets, ends: Offsets, waiting: int, *, is_all: bool) -> Batch:
    return Batch(starts, LogState(1, ends), {}, 1, waiting, is_all)


@pytest.fixture(autouse=True)
def of_a_new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink, "FRESHNESS", Freshness("sink", CollectorRegistry()))


def metrics() -> list[float | None]:
    return [sink.REGISTRY.get_sample_value("databus_sink_lag_records"), sink.FRESHNESS.seconds]


def test_the_lag_grows_until_the_lake_has_all_that_kafka_had_at_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(freshness.time, "time", lambda: now[0])
    found = lag.Lag()
    first = batch(
        {"a": {0: 5, 1: 0}, "b": {0: 2}}, {"a": {0: 8, 1: 1}, "b": {0: 2}, "gone": {0: 7}}, waiting=10, is_all=False
    )
    found.found(first)
    now[0] = 1010
    assert metrics() == [10, 10]
    found.written(first, 1000, is_behind=False)
    assert metrics() == [6, 10]

    rest = batch({"a": {0: 8, 1: 1}}, {"a": {0: 14, 1: 1}}, waiting=8, is_all=True)
    found.found(rest)
    now[0] = 1015
    found.written(rest, 1010, is_behind=True)  # a mirror could not be written
    assert metrics() == [2, 15]
    found.written(rest, 1010, is_behind=False)
    assert metrics() == [2, 5], "what came while it was searched does not count"
    found.found(None)
    found.written(None, 1014, is_behind=False)
    assert metrics() == [0, 1]
