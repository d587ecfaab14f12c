"""The metrics of each service, for Prometheus.

A service exports its own metrics, those of `databus_core.metrics.common`, and Python's. docs/reference/metrics.md is
made from these modules.
"""

from prometheus_client import disable_created_metrics

disable_created_metrics()  # type: ignore[no-untyped-call]  # a further series for each counter, which nobody uses
