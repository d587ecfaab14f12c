"""Every metric is in the reference."""

import re
from pathlib import Path

from prometheus_client import REGISTRY

import databus_core.metrics  # noqa: F401 - registers them

_PAGE = Path(__file__).parents[3] / "docs" / "reference" / "metrics.md"


def test_the_reference_lists_every_metric_and_no_other() -> None:
    families = [family for family in REGISTRY.collect() if family.name.startswith("databus_")]
    ours = {f"{family.name}_total" if family.type == "counter" else family.name for family in families}
    assert set(re.findall(r"^\| `(databus_\w+)", _PAGE.read_text(), re.M)) == ours
