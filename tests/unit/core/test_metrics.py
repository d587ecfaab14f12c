"""What services export, and its reference."""

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from databus_core.metrics import freshness
from databus_core.metrics.common import REGISTRY
from databus_core.metrics.exposition import SERVICES, Service, exposition
from databus_core.metrics.reader import FRESHNESS
from databus_core.pipe import ReadTo
from databus_publisher.marks import Marks
from reference import metrics as reference


def samples(service: Service, *, is_standby: bool = False) -> dict[str, list[dict[str, str]]]:
    """Return the labels of what a service exports, by the names of the samples."""
    found: dict[str, list[dict[str, str]]] = {}
    text = exposition(service, "shop", is_standby=is_standby).decode()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample.labels)
    return found


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_exports_its_own_metrics_with_the_name_of_its_pipeline(service: Service) -> None:
    exported = samples(service)
    prefixes = {name.split("_")[1] for name in exported if name.startswith("databus_")}
    own = {"reader": {"reader", "redis"}, "publisher": {"publisher"}, "dump-api": {"dump"}, "spark-sink": {"sink"}}
    assert prefixes - {"build", "freshness", "leader", "ready", "retries"} == own[service]
    assert all(labels["pipeline"] == "shop" for each in exported.values() for labels in each)
    assert {"databus_build_info", "databus_ready", "process_start_time_seconds"} <= exported.keys()


def test_labelled_counters_exist_before_anything_is_counted() -> None:
    reasons = {labels["reason"] for labels in samples("publisher")["databus_publisher_dead_letters_total"]}
    assert {"too_large", "skipped"} <= reasons
    states = {labels["state"] for labels in samples("dump-api")["databus_dump_total"]}
    assert states == {"complete", "failed", "cancelled"}
    assert {"dependency": "kafka", "error": "KafkaUnavailable", "pipeline": "shop"} in samples("reader")[
        "databus_retries_total"
    ]


def test_a_standby_does_not_tell_how_things_were_when_it_was_active() -> None:
    FRESHNESS.begin()
    active, standby = samples("reader"), samples("reader", is_standby=True)
    assert {"databus_freshness_seconds", "databus_reader_backlog_bytes"} <= active.keys() - standby.keys()
    assert {"databus_reader_rows_total", "databus_ready"} <= standby.keys()


def freshness_of(service: Service) -> float | None:
    return SERVICES[service].get_sample_value("databus_freshness_seconds", {"stage": service})


def test_the_publisher_is_as_fresh_as_what_it_has_committed_while_the_reader_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 1000.0
    monkeypatch.setattr(freshness.time, "time", lambda: now)
    marks = Marks()
    marks.update(ReadTo(entries=5, time_us=990_000_000), published=5)
    assert freshness_of("publisher") == 10
    for second in range(1, 8):  # the reader appends two entries a second; the publisher has one of them
        marks.update(ReadTo(5 + 2 * second, (990 + second) * 1_000_000), published=5 + second)
    assert freshness_of("publisher") == 7, "of the 12 entries, the first 11 were there after three seconds"
    marks.update(ReadTo(0, 0), published=0)  # a new generation, before the reader has appended to it
    assert freshness_of("publisher") == 7


@pytest.mark.parametrize(("path", "text"), [reference.page()], ids=["metrics.md"])
def test_the_reference_is_generated_from_the_metrics(path: Path, text: str) -> None:
    assert path.read_text() == text, "run `make docs`"


def test_alerts_use_metrics_that_exist() -> None:
    known = {name for registry in [REGISTRY, *SERVICES.values()] for name in reference.exported(registry)}
    for alert in reference.alerts():
        used = set(re.findall(r"\bdatabus_\w+", alert["expr"]))
        assert used <= known, alert["alert"]
