"""The tables of docs/reference/metrics.md, made from databus_core.metrics and the chart's alerts."""

import re
from collections.abc import Iterator
from pathlib import Path

import yaml
from prometheus_client import CollectorRegistry, Metric

from databus_core.metrics.common import REGISTRY
from databus_core.metrics.exposition import SERVICES
from reference.pages import Page, generated

ALERTS = Path(__file__).parents[2] / "charts/databus/files/alerts.yaml"


def alerts() -> list[dict[str, str]]:
    """Return the alerting rules."""
    return [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


def exported(registry: CollectorRegistry) -> dict[str, Metric]:
    """Return the metrics of a registry by the names that queries use; those of a histogram have suffixes there."""
    return {f"{each.name}_total" if each.type == "counter" else each.name: each for each in registry.collect()}


def page() -> Page:
    """Return the page with a table for each service."""
    tables = [("Every service", REGISTRY), *SERVICES.items()]
    text = "\n".join(f"### {title}\n\n{_table(registry)}" for title, registry in tables)
    return generated("metrics.md", "databus_core/metrics", text)


def _table(registry: CollectorRegistry) -> str:
    rows = "".join(
        f"| `{name}{_labels(registry, family)}` | {family.type} | {family.documentation} | {_links(name)} |\n"
        for name, family in exported(registry).items()
    )
    return f"| metric | type | meaning | alerts |\n|---|---|---|---|\n{rows}"


def _labels(registry: CollectorRegistry, family: Metric) -> str:
    """Return the labels, but `pipeline`, as `{a,b}`; empty if there are none."""
    collector = registry._names_to_collectors[family.name]
    labels = getattr(collector, "_labelnames", ["stage"])  # `Freshness` is a collector of ours
    return f"{{{','.join(labels)}}}" if labels else ""


def _links(metric: str) -> str:
    return ", ".join(_alerts_about(metric))


def _alerts_about(metric: str) -> Iterator[str]:
    for alert in alerts():
        if re.search(rf"\b{metric}(_bucket|_sum|_count)?\b", alert["expr"]):
            page = alert["annotations"]["runbook_url"].removeprefix("docs/")  # type: ignore[index]
            yield f"[{alert['alert']}](../{page})"
