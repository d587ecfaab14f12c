"""Whether this process makes spans: only if OpenTelemetry's standard variables name a collector.

Without a collector nothing of OpenTelemetry is imported, and the services use classes that know nothing of spans.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from databus_core.errors import InvalidSettings
from databus_core.metrics.exposition import Service

if TYPE_CHECKING:
    from databus_core.spans import Spans

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
#: How long a service that stops waits for the collector. With all else that it waits for, it stays below the 30 s of
#: Kubernetes.
_FLUSH_SECONDS = 2.0
#: the spans of this process: one element, as soon as they are opened
_opened: "list[Spans]" = []


def _wanted() -> bool:
    """Return whether spans are wanted. Raises InvalidSettings if they could not be exported."""
    endpoint = _first_set(_ENDPOINTS)
    disabled = os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    exporters = os.environ.get("OTEL_TRACES_EXPORTER") or "otlp"
    if endpoint is None or disabled or "otlp" not in exporters.split(","):
        return False
    if not os.environ[endpoint].lower().startswith(("http://", "https://")):
        raise InvalidSettings(f"{endpoint} is no URL: begin it with http:// or https://")
    protocol = _first_set(_PROTOCOLS)
    if protocol and os.environ[protocol] != "http/protobuf":
        raise InvalidSettings(
            f"{protocol}={os.environ[protocol]}: spans are exported by http/protobuf: set it to that, and {endpoint} "
            "to the collector's port for HTTP, normally 4318"
        )
    _require_ratio()
    return True


def _first_set(names: Iterable[str]) -> str | None:
    """Return the first of these variables that is set: that for traces goes before that for all signals."""
    return next((name for name in names if os.environ.get(name)), None)


def _require_ratio() -> None:
    """Refuse a ratio that is none: OpenTelemetry would sample all entries."""
    ratio = os.environ.get("OTEL_TRACES_SAMPLER_ARG")
    if ratio and os.environ.get("OTEL_TRACES_SAMPLER", "").lower().endswith("traceidratio"):
        try:
            is_ratio = 0 <= float(ratio) <= 1
        except ValueError:
            is_ratio = False
        if not is_ratio:
            raise InvalidSettings(f"OTEL_TRACES_SAMPLER_ARG={ratio}: set it to a number from 0 to 1, such as 0.01")


def open_spans(service: Service, pipeline: str) -> "Spans | None":
    """Return the spans of this process, which has one service and one pipeline; None if no spans are wanted.

    Raises InvalidSettings if they could not be exported.
    """
    if not _opened and _wanted():
        try:
            _opened.append(import_module("databus_core.spans").Spans(service, pipeline))
        except ModuleNotFoundError as error:
            raise InvalidSettings(
                f"{_first_set(_ENDPOINTS)} is set, but OpenTelemetry is not installed ({error.name}): pip install "
                "'databus-core[tracing]', or unset the variable"
            ) from error
        except ValueError as error:
            raise InvalidSettings(f"a variable of OpenTelemetry (OTEL_…) has a wrong value: {error}") from error
    return _opened[0] if _opened else None


@contextmanager
def flushed_spans() -> Iterator[None]:
    """Export at the end of the block what is not exported yet. A collector that hangs delays the end by 2 s."""
    try:
        yield
    finally:
        while _opened:
            _opened.pop().close(_FLUSH_SECONDS)
