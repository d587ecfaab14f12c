"""The alerts' rules, evaluated by `promtool`, and their pages."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from devstack.prometheus import promtool
from reference import metrics as reference

_ROOT = Path(__file__).parents[2]
_SERIES = Path(__file__).with_name("rules_test.yaml")


def test_each_alert_fires_when_it_should_and_not_before(tmp_path: Path) -> None:
    shutil.copy(reference.ALERTS, tmp_path)
    shutil.copy(_SERIES, tmp_path)
    command = [*promtool(lambda _: None), "test", "rules", _SERIES.name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    tested = set(re.findall(r"alertname: (\w+)\n\s+exp_alerts:\n", _SERIES.read_text()))
    assert tested == {alert["alert"] for alert in reference.alerts()}


@pytest.mark.parametrize("alert", reference.alerts(), ids=lambda alert: alert["alert"])
def test_each_alert_has_a_page_that_says_what_to_do(alert: dict[str, dict[str, str]]) -> None:
    page = (_ROOT / alert["annotations"]["runbook_url"]).read_text()
    assert page.startswith(f"# {alert['alert']}\n\nSeverity: {alert['labels']['severity']}.\n")
    assert re.findall(r"^## (.*)", page, re.MULTILINE) == ["Meaning", "Impact", "Diagnosis", "What to do"]
