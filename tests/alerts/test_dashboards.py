"""The dashboards ask only for what services export, in a language that Prometheus understands."""

import json
import re
import subprocess
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from databus_core.metrics.common import REGISTRY
from databus_core.metrics.exposition import SERVICES
from devstack.prometheus import promtool
from reference import dashboards, metrics

PAGES = list(dashboards.pages())
NAMES = [page.path.stem for page in PAGES]
_SUFFIXES = re.compile("_(bucket|sum|count)$")


def panels(text: str) -> list[dict[str, Any]]:
    return list(json.loads(text)["panels"])


def expressions() -> list[str]:
    """Return all expressions, with the intervals that Grafana puts in."""
    found = [target["expr"] for page in PAGES for panel in panels(page.text) for target in panel["targets"]]
    return [each.replace("$__rate_interval", "1m") for each in found]


@pytest.mark.parametrize(("path", "text"), PAGES, ids=NAMES)
def test_a_dashboard_is_generated_and_its_panels_do_not_overlap(path: Path, text: str) -> None:
    assert path.read_text() == text, "run `make docs`"
    for one, other in combinations([panel["gridPos"] for panel in panels(text)], 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        assert beside or one["y"] + one["h"] <= other["y"], (one, other)
    assert all(panel["title"] and panel["description"].endswith(".") for panel in panels(text))


def test_the_dashboards_use_metrics_and_labels_that_exist() -> None:
    known = {name for registry in [REGISTRY, *SERVICES.values()] for name in metrics.exported(registry)}
    used = {name for each in expressions() for name in re.findall(r"\bdatabus_\w+", each)}
    assert {_SUFFIXES.sub("", name) for name in used} <= known
    unused = known - {_SUFFIXES.sub("", name) for name in used}
    assert unused <= {
        "databus_build_info",
        "databus_dump_schedules",
        "databus_reader_binlog_offset",
        "databus_reader_statements_skipped_total",
        "databus_reader_tables_read_again_total",
        "databus_sink_offset",
    }


def test_prometheus_understands_the_expressions(tmp_path: Path) -> None:
    rules = [{"record": f"panel:{number}", "expr": each} for number, each in enumerate(expressions())]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    command = [*promtool(lambda _: None), "check", "rules", str(tmp_path / "rules.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
