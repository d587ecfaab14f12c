"""Outages are logged once when they begin and once when they end."""

import logging

import pytest

from databus_core.errors import KafkaUnavailable, RedisUnavailable, SourceUnavailable
from databus_core.outages import Outages

Lines = list[tuple[str, str, str]]


@pytest.fixture
def outages(caplog: pytest.LogCaptureFixture) -> Outages:
    caplog.set_level(logging.INFO)
    return Outages()


def logged(caplog: pytest.LogCaptureFixture) -> Lines:
    """Return the lines logged since the last call: event, dependency and host of each."""
    lines = [(str(r.event), r.fields["dependency"], r.fields.get("host", "")) for r in caplog.records]
    caplog.clear()
    return lines


def test_an_outage_is_logged_when_it_begins_and_when_it_ends(
    outages: Outages, caplog: pytest.LogCaptureFixture
) -> None:
    for attempt in range(3):
        outages.lost(KafkaUnavailable(f"no broker answers, attempt {attempt}"))
    assert caplog.messages == ["no broker answers, attempt 0; retrying"]
    assert logged(caplog) == [("dependency_lost", "kafka", "")]
    outages.back()
    outages.back()
    (record,) = caplog.records
    assert 0 <= record.fields["seconds"] < 5
    assert logged(caplog) == [("dependency_back", "kafka", "")]
    outages.lost(KafkaUnavailable("no broker answers"))
    assert logged(caplog) == [("dependency_lost", "kafka", "")]


def test_retries_are_logged_at_level_debug(outages: Outages, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for _ in range(3):
        outages.lost(KafkaUnavailable("no broker answers"))
    assert [event for event, *_ in logged(caplog)] == ["dependency_lost", "dependency_retried", "dependency_retried"]


def test_a_host_that_is_back_does_not_end_the_outages_of_other_hosts(
    outages: Outages, caplog: pytest.LogCaptureFixture
) -> None:
    for host in ("a:1", "b:1"):
        outages.lost(SourceUnavailable("the host does not answer", host))
    outages.lost(SourceUnavailable("no host answers"))
    outages.lost(KafkaUnavailable("no broker answers"))
    logged(caplog)
    outages.back(host="b:1")
    assert logged(caplog) == [
        ("dependency_back", "source", "b:1"),
        ("dependency_back", "source", ""),
        ("dependency_back", "kafka", ""),
    ]


def test_only_the_given_dependencies_are_back(outages: Outages, caplog: pytest.LogCaptureFixture) -> None:
    outages.lost(KafkaUnavailable("no broker answers"))
    outages.lost(RedisUnavailable("Redis does not answer"))
    logged(caplog)
    outages.back(among=("redis", "kubernetes"))
    assert logged(caplog) == [("dependency_back", "redis", "")]
