"""The metrics of each service, for Prometheus.

A service exports its own metrics, those of `databus_core.metrics.common`, and Python's. docs/reference/metrics.md is
made from these modules.
"""
