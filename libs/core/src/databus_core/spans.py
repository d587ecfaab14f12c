"""Spans of the entries of the pipe, sent to a collector by OTLP over HTTP. Only `databus_core.tracing` imports this.

Each entry has a trace: `databus.read` by the reader, below it `databus.publish` by the publisher, and below that
`databus.commit`. The ids are a hash of what identifies the entry in both processes, so the pipe transports none.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from importlib.metadata import version
from threading import Thread
from time import time_ns
from typing import Literal, NamedTuple, TypeAlias
from uuid import uuid4

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from databus_core import names
from databus_core.log_events import LogEvent
from databus_core.logs import get_logger

log = get_logger(__name__)

Stage: TypeAlias = Literal["read", "publish", "commit"]
Attributes: TypeAlias = Mapping[str, str | int]


class _Kind(NamedTuple):
    """What all spans of a stage have in common. Attributes are named by the conventions for messaging systems."""

    parent: Stage | None
    kind: SpanKind
    #: messaging.system, messaging.operation.name and messaging.operation.type
    system: str
    operation: str
    type: str


_KINDS: dict[Stage, _Kind] = {
    "read": _Kind(None, SpanKind.PRODUCER, "redis", "append", "send"),
    "publish": _Kind("read", SpanKind.CONSUMER, "redis", "publish", "process"),
    "commit": _Kind("publish", SpanKind.CLIENT, "kafka", "commit", "settle"),
}


class Trace(NamedTuple):
    """The trace of an entry."""

    id: int
    #: ids of its spans
    spans: dict[Stage, int]
    #: the generation of the entry, in hex digits as in the log
    generation: str
    #: number of the entry in the generation, from 0
    entry: int


class _Ids(IdGenerator):
    """Returns the ids that were set, instead of random ones."""

    trace = span = 0

    def generate_trace_id(self) -> int:
        return self.trace

    def generate_span_id(self) -> int:
        return self.span


class _Exporter(OTLPSpanExporter):
    """Logs once that the collector does not accept spans, and once that it does again."""

    _lost = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = super().export(spans)
        lost = result is not SpanExportResult.SUCCESS
        if lost and not self._lost:
            text = "the collector does not accept spans, they are dropped: check OTEL_EXPORTER_OTLP_ENDPOINT"
            detail = f"log.levels {{{OTLPSpanExporter.__module__}: warning}} shows each answer"
            log.warning(LogEvent.COLLECTOR_LOST, f"{text}; {detail}")
        elif self._lost and not lost:
            log.info(LogEvent.COLLECTOR_BACK, "the collector accepts spans again")
        self._lost = lost
        return result


class Spans:
    """Makes the spans of one service. A thread of its own exports them; while it cannot keep up, spans are dropped."""

    def __init__(self, service: str, pipeline: str) -> None:
        """Raise ValueError if a variable of the environment has a wrong value."""
        databus = version("databus-core")
        resource = Resource.create(
            {
                "service.name": f"databus-{service}",
                "service.version": databus,
                "service.instance.id": str(uuid4()),
                "databus.pipeline": pipeline,
            }
        )
        self._stream = names.stream_key(pipeline)
        self._ids = _Ids()
        self._provider = TracerProvider(
            # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES replace what is the default here
            resource=resource.merge(OTELResourceDetector().detect()),
            id_generator=self._ids,
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(BatchSpanProcessor(_Exporter()))
        self._tracer = self._provider.get_tracer("databus", databus)

    def trace(self, generation: bytes, claim: bytes, number: int) -> Trace | None:
        """Return the trace of an entry of the pipe; None if it is not sampled, for the reader and the publisher alike.

        Both make the decision for the root of the trace, and all usual samplers make it by the trace's id alone.
        """
        key = b"".join((generation, claim, number.to_bytes(8, "big")))
        digest = blake2b(key, digest_size=16 + 8 * len(_KINDS), person=b"databus.entry").digest()
        trace = int.from_bytes(digest[:16], "big")
        if (
            self._provider.sampler.should_sample(Context(), trace, "databus.read").decision
            is not Decision.RECORD_AND_SAMPLE
        ):
            return None
        spans = {stage: int.from_bytes(digest[16 + 8 * n : 24 + 8 * n], "big") for n, stage in enumerate(_KINDS)}
        return Trace(trace, spans, generation.hex(), number)

    def add(
        self,
        trace: Trace,
        stage: Stage,
        begun_ns: int,
        ended_ns: int,
        attributes: Attributes,
        error: Exception | None = None,
    ) -> None:
        """Add a span, with times in ns since the epoch. It has the type of an `error`; a message may quote a row."""
        kind = _KINDS[stage]
        self._ids.trace, self._ids.span = trace.id, trace.spans[stage]
        context = Context()
        if kind.parent:
            sampled = TraceFlags(TraceFlags.SAMPLED)
            parent = SpanContext(trace.id, trace.spans[kind.parent], kind.parent == "read", sampled)
            context = set_span_in_context(NonRecordingSpan(parent), context)
        entry = {"messaging.destination.name": self._stream, "messaging.message.id": f"{trace.entry + 1}-0"}
        found: dict[str, str | int] = {
            "databus.generation": trace.generation,
            "databus.entry": trace.entry,
            "messaging.system": kind.system,
            "messaging.operation.name": kind.operation,
            "messaging.operation.type": kind.type,
            **(entry if kind.system == "redis" else {}),
            **attributes,
            **({"error.type": type(error).__name__} if error else {}),
        }
        span = self._tracer.start_span(f"databus.{stage}", context, kind.kind, found, start_time=begun_ns)
        if error:
            span.set_status(Status(StatusCode.ERROR, type(error).__name__))
        span.end(ended_ns)

    @contextmanager
    def measured(self, trace: Trace, stage: Stage, begun_ns: int, attributes: Attributes) -> Iterator[None]:
        """Add a span when the block ends or fails; none if it is cancelled."""
        try:
            yield
        except Exception as error:
            self.add(trace, stage, begun_ns, time_ns(), attributes, error)
            raise
        self.add(trace, stage, begun_ns, time_ns(), attributes)

    def close(self, seconds: float) -> None:
        """Export what is left, for at most this time."""
        closing = Thread(target=self._provider.shutdown, daemon=True)
        closing.start()
        closing.join(seconds)
