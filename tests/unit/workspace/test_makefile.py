"""Recipes of the Makefile that are loops."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
#: stands for helm, and refuses one command for one file of values
HELM = """#!/bin/sh
for values; do :; done  # the last argument
[ "$1 $values" != "$HELM_REFUSES" ]
"""
VALUES = [file.relative_to(ROOT) for file in (ROOT / "charts/databus").glob("ci/*values.yaml")]


def make_chart(folder: Path, refused: str) -> int:
    (folder / "helm").write_text(HELM)
    (folder / "helm").chmod(0o755)
    environment = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}", "HELM_REFUSES": refused}
    return subprocess.run(["make", "chart"], cwd=ROOT, env=environment, capture_output=True, check=False).returncode


def test_make_chart_succeeds_if_helm_accepts_everything(tmp_path: Path) -> None:
    assert make_chart(tmp_path, "") == 0


@pytest.mark.parametrize("command", ["lint", "template"])
@pytest.mark.parametrize("values", VALUES, ids=str)
def test_make_chart_fails_if_helm_refuses_one_of_the_files(tmp_path: Path, command: str, values: Path) -> None:
    assert make_chart(tmp_path, f"{command} {values}") != 0
