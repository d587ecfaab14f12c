"""A collector of traces: it receives what OpenTelemetry's exporter sends."""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue


class Received(NamedTuple):
    """A span, with ids in hex digits and times in ns since the epoch; `error` is the message of its status."""

    name: str
    trace: str
    span: str
    parent: str
    begun: int
    ended: int
    error: str
    attributes: dict[str, Any]
    resource: dict[str, Any]


class Collector:
    """`url` is for OTEL_EXPORTER_OTLP_ENDPOINT."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.spans: list[Received] = []
        #: all requests as they came
        self.raw = b""
        self.requests = 0
        #: what it answers; it forgets the spans of a request that it refuses
        self.status = 200
        #: requests wait for it
        self.answers = threading.Event()
        self.answers.set()

    def receive(self, body: bytes) -> int:
        """Receive a request, and return the status of the answer."""
        self.answers.wait()
        status = self.status
        self.requests += 1
        self.raw += body
        if status == 200:
            self._keep(body)
        return status

    def _keep(self, body: bytes) -> None:
        for sent in ExportTraceServiceRequest.FromString(body).resource_spans:
            resource = _values(sent.resource.attributes)
            self.spans += [
                Received(
                    span.name,
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    span.start_time_unix_nano,
                    span.end_time_unix_nano,
                    span.status.message,
                    _values(span.attributes),
                    resource,
                )
                for scope in sent.scope_spans
                for span in scope.spans
            ]


@contextmanager
def collecting() -> Iterator[Collector]:
    """Run a collector in a thread."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            self.send_response(collector.receive(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector = Collector(f"http://127.0.0.1:{server.server_port}")
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield collector
        collector.answers.set()
        server.shutdown()


def _values(attributes: Iterable[KeyValue]) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value") or "") for each in attributes}
