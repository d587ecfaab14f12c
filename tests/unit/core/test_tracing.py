"""Spans: only if the environment names a collector, with ids that both services derive from an entry."""

import secrets
import subprocess
import sys
from collections.abc import Iterator

import msgspec
import pytest

from common.collector import Collector, collecting
from common.waiting import eventually
from databus_core.entry_contents import describe_entry
from databus_core.errors import GenerationLost, InvalidSettings
from databus_core.events import Action, Begin, Commit, RowsEvent, SnapshotEvent
from databus_core.log_events import LogEvent
from databus_core.runtime import Health, Work
from databus_core.settings import Settings
from databus_core.spans import Spans
from databus_core.tracing import flushed_spans, open_spans
from databus_publisher.service import check as check_publisher
from databus_reader.service import check as check_reader

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"

#: runs with an environment in which the packages of the extra cannot be imported
WITHOUT_PACKAGES = """
import sys
sys.modules["opentelemetry"] = None
import databus_reader.__main__, databus_publisher.__main__
from databus_core.tracing import open_spans
try:
    print(open_spans("reader", "shop"), "databus_core.spans" in sys.modules)
except Exception as error:
    print(f"{type(error).__name__}: {error}")
"""


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """A collector that the environment names."""
    with collecting() as running:
        monkeypatch.setenv(ENDPOINT, running.url)
        yield running


def run_without_packages(**environment: str) -> str:
    command = [sys.executable, "-c", WITHOUT_PACKAGES]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


def test_services_need_nothing_of_opentelemetry_without_a_collector_and_name_the_extra_with_one() -> None:
    assert run_without_packages() == "None False"
    assert run_without_packages(OTEL_EXPORTER_OTLP_ENDPOINT="http://collector:4318") == (
        f"InvalidSettings: {ENDPOINT} is set, but OpenTelemetry is not installed (opentelemetry.context): pip install "
        "'databus-core[tracing]', or unset the variable"
    )


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, False),
        ({ENDPOINT: ""}, False),
        ({ENDPOINT: "http://collector:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, True),
        ({ENDPOINT: "http://collector:4318", "OTEL_SDK_DISABLED": "true"}, False),
        ({ENDPOINT: "http://collector:4318", "OTEL_TRACES_EXPORTER": "none"}, False),
        ({ENDPOINT: "http://collector:4318", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, True),
        (
            {
                ENDPOINT: "http://collector:4318",
                "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
                "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
            },
            True,
        ),
    ],
)
def test_the_standard_variables_decide(
    environment: dict[str, str], wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with flushed_spans():
        assert bool(open_spans("reader", "shop")) is wanted


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "set it to that, and OTEL_EXPORTER_OTLP_ENDPOINT to the collector's"),
        (ENDPOINT, "collector:4318", f"{ENDPOINT} is no URL: begin it with http:// or https://"),
        ("OTEL_TRACES_SAMPLER_ARG", "1%", "OTEL_TRACES_SAMPLER_ARG=1%: set it to a number from 0 to 1, such as 0.01"),
        ("OTEL_TRACES_SAMPLER_ARG", "10", "OTEL_TRACES_SAMPLER_ARG=10: set it to a number from 0 to 1, such as 0.01"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "0", "a variable of OpenTelemetry (OTEL_…) has a wrong value: max_queue_size"),
    ],
)
def test_a_variable_that_cannot_work_is_refused(
    name: str, value: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENDPOINT, "http://collector:4318")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv(name, value)
    with pytest.raises(InvalidSettings) as refused:
        open_spans("reader", "shop")
    assert expected in str(refused.value)


@pytest.mark.parametrize("check", [check_reader, check_publisher])
async def test_a_check_finds_what_would_fail_at_the_start(check: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENDPOINT, "http://collector:4318")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "0")
    with pytest.raises(InvalidSettings, match="max_queue_size"):
        await check(Settings.model_validate({"name": "shop"}), Health())


def test_reader_and_publisher_sample_the_same_entries_and_give_them_the_same_ids(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
    reader, publisher = Spans("reader", "shop"), Spans("publisher", "shop")
    generation, claim = secrets.token_bytes(8), secrets.token_bytes(8)
    traces = [reader.trace(generation, claim, number) for number in range(100)]
    assert traces == [publisher.trace(generation, claim, number) for number in range(100)]
    assert 20 < sum(trace is not None for trace in traces) < 80
    sampled = next(trace for trace in traces if trace)
    assert reader.trace(generation, secrets.token_bytes(8), sampled.entry) != sampled
    reader.add(sampled, "read", 1, 2, {})
    publisher.add(sampled, "publish", 3, 4, {})
    reader.close(5)
    publisher.close(5)
    read, publish = sorted(collector.spans, key=lambda span: span.begun)
    assert (read.trace, read.span) == (publish.trace, publish.parent)


def test_a_failed_step_has_the_type_of_its_error_and_not_the_message(collector: Collector) -> None:
    with flushed_spans():
        spans = open_spans("publisher", "shop")
        assert spans
        trace = spans.trace(b"generation", b"claim", 7)
        assert trace
        with pytest.raises(GenerationLost), spans.measured(trace, "publish", 1, {}):
            raise GenerationLost("confidential")
    (span,) = collector.spans
    assert span.error == span.attributes["error.type"] == "GenerationLost"
    assert span.attributes["messaging.message.id"] == "8-0"
    assert b"confidential" not in collector.raw


async def test_an_outage_of_the_collector_is_one_line_in_the_log_and_its_end_another(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
    caplog.set_level("INFO", "databus")
    spans = Spans("reader", "shop")
    for number, status in enumerate([400, 400, 200, 200]):
        collector.status = status
        trace = spans.trace(b"generation", b"claim", number)
        assert trace
        spans.add(trace, "read", 1, 2, {})

        async def answered(requests: int = number + 1) -> bool:
            return collector.requests == requests

        await eventually(answered, seconds=10)
    spans.close(5)
    events = [record.event for record in caplog.records if hasattr(record, "event")]
    assert events == [LogEvent.COLLECTOR_LOST, LogEvent.COLLECTOR_BACK]


def test_an_entry_is_described_by_numbers_and_positions() -> None:
    rows = msgspec.Raw(msgspec.msgpack.encode([[b"1", b"old"], [b"1", b"new"]]))
    begin = Begin(transaction=41, gtid="0-1-41", file="log.1", server_id=1, thread_id=1, time_us=1_700_000_000_000_000)
    update = RowsEvent(table="t", action=Action.UPDATE, row=0, start=4, end=104, rows=rows)
    commit = Commit("0-1-41", "log.1", 204, None)
    following = Begin(
        transaction=42, gtid="0-1-42", file="log.1", server_id=1, thread_id=1, time_us=1_700_000_001_500_000
    )
    assert describe_entry([begin, update, commit, following, update]) == {
        "databus.transactions": 1,
        "databus.rows": 2,
        "databus.transaction.first": 41,
        "databus.transaction.last": 42,
        "databus.committed_at": "2023-11-14T22:13:21.500000+00:00",
        "databus.gtid": "0-1-42",
        "databus.position": "log.1:204",
    }
    assert describe_entry([]) == {"databus.transactions": 0, "databus.rows": 0}


@pytest.mark.parametrize("length", [0, 1, 15, 16, 300, 65_535, 65_536])
def test_rows_are_counted_without_decoding_them(length: int) -> None:
    chunk = SnapshotEvent("t", 0, msgspec.Raw(msgspec.msgpack.encode([[]] * length)), 1)
    assert describe_entry([chunk, chunk])["databus.rows"] == 2 * length
