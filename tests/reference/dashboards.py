"""The Grafana dashboards of the chart, made from dashboards.yaml."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from reference.pages import Page

_FOLDER = Path(__file__).parents[2] / "charts/databus/files/dashboards"
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_KINDS = {"stat": "stat", "graph": "timeseries", "table": "table"}
_HEIGHTS = {"stat": 5, "graph": 8, "table": 8}
_WIDTH = 24
_VARIABLES = [
    {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
    {
        "name": "pipeline",
        "label": "Pipeline",
        "type": "query",
        "datasource": _SOURCE,
        "query": "label_values(databus_build_info, pipeline)",
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "current": {"text": "All", "value": "$__all"},
    },
]
_LINK = {"title": "Databus", "type": "dashboards", "tags": ["databus"], "asDropdown": True}


def pages() -> Iterator[Page]:
    """Return the file of each dashboard."""
    found = yaml.safe_load(Path(__file__).with_name("dashboards.yaml").read_text())
    for name, panels in found.items():
        yield Page(_FOLDER / f"{name}.json", json.dumps(_dashboard(name, panels), indent=1) + "\n")


def _dashboard(name: str, panels: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "uid": f"databus-{name}",
        "title": f"Databus: {name}",
        "tags": ["databus"],
        "links": [_LINK | {"keepTime": True, "includeVars": True}],
        "time": {"from": "now-1h", "to": "now"},
        "refresh": "30s",
        "schemaVersion": 39,
        "templating": {"list": _VARIABLES},
        "panels": list(_placed(panels)),
    }


def _placed(panels: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Place the panels from left to right, in rows that are as high as their highest panel."""
    x = y = height = 0
    for number, panel in enumerate(panels, 1):
        if x + panel["width"] > _WIDTH:
            x, y, height = 0, y + height, 0
        size = {"h": _HEIGHTS[panel["kind"]], "w": panel["width"], "x": x, "y": y}
        yield {"id": number, "gridPos": size, **_panel(panel)}
        x, height = x + panel["width"], max(height, size["h"])


def _panel(panel: dict[str, Any]) -> dict[str, Any]:
    warn, bad = panel.get("limits", (None, None))
    steps = [{"color": "green", "value": None}]
    steps += [{"color": "yellow", "value": warn}, {"color": "red", "value": bad}] if bad else []
    is_graph = panel["kind"] == "graph"
    return {
        "title": panel["title"],
        "description": panel["about"],
        "type": _KINDS[panel["kind"]],
        "datasource": _SOURCE,
        "fieldConfig": {
            "defaults": {
                "unit": panel["unit"],
                "noValue": "not known",
                "thresholds": {"mode": "absolute", "steps": steps},
                "custom": {"thresholdsStyle": {"mode": "dashed" if is_graph and bad else "off"}},
            },
            "overrides": [],
        },
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "datasource": _SOURCE,
                "expr": re.sub(r"\$p\b", '{pipeline=~"$pipeline"}', expression),
                "legendFormat": legend,
                "instant": not is_graph,  # a value of the past would hide that a service is gone
                "format": "table" if panel["kind"] == "table" else "time_series",
            }
            for index, (legend, expression) in enumerate(panel["queries"].items())
        ],
    }
