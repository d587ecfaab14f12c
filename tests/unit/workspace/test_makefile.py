"""Recipes of the Makefile that are loops."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
#: stands for each tool, and refuses one command; helm's end with the file of values, helm-docs prints the README
TOOL = """#!/bin/sh
for last; do :; done
[ "$(basename "$0")" != helm-docs ] || cat charts/databus/README.md
[ "$(basename "$0") $1 $last" != "$REFUSED" ]
"""
VALUES = [file.relative_to(ROOT) for file in (ROOT / "charts/databus").glob("ci/*values.yaml")]


def make_chart(folder: Path, refused: str) -> int:
    for tool in ("helm", "helm3", "kubeconform", "helm-unittest", "helm-docs"):
        (folder / tool).write_text(TOOL)
        (folder / tool).chmod(0o755)
    variables = {"PATH": f"{folder}:{os.environ['PATH']}", "REFUSED": refused, "KUBECONFORM": "kubeconform check"}
    environment = os.environ | variables
    return subprocess.run(["make", "chart"], cwd=ROOT, env=environment, capture_output=True, check=False).returncode


def test_make_chart_succeeds_if_the_tools_accept_everything(tmp_path: Path) -> None:
    assert make_chart(tmp_path, "") == 0


@pytest.mark.parametrize("command", ["lint", "template"])
@pytest.mark.parametrize("values", VALUES, ids=str)
def test_make_chart_fails_if_helm_refuses_one_of_the_files(tmp_path: Path, command: str, values: Path) -> None:
    assert make_chart(tmp_path, f"helm {command} {values}") != 0


def test_make_chart_fails_if_helm_3_refuses_a_file(tmp_path: Path) -> None:
    assert make_chart(tmp_path, f"helm3 template {VALUES[0]}") != 0


def test_make_chart_fails_if_an_object_a_suite_or_the_readme_is_wrong(tmp_path: Path) -> None:
    skipped = "HTTPRoute,PodMonitor,PrometheusRule,ServiceMonitor,SparkApplication"
    assert make_chart(tmp_path, f"kubeconform check {skipped}") != 0
    assert make_chart(tmp_path, "helm-unittest --strict charts/databus") != 0
    assert make_chart(tmp_path, "helm-docs --chart-search-root --dry-run") != 0
