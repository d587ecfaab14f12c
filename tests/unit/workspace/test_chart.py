"""What the chart renders is a configuration that each service accepts."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from databus_core.settings import load

_CHART = Path(__file__).parents[3] / "charts" / "databus"
pytestmark = pytest.mark.skipif(not shutil.which("helm"), reason="helm is not on PATH")


@pytest.mark.parametrize("values", ["full", "pipelines", "spark-client", "spark-operator"])
def test_each_pod_has_a_configuration_that_is_valid(
    values: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABUS__PUBLISHER__SALT", "from a Secret")
    command = ["helm", "template", "shop", _CHART, "-f", _CHART / "ci" / f"{values}-values.yaml"]
    rendered = subprocess.run(command, capture_output=True, check=True).stdout
    found = list(configurations(rendered))
    assert len(found) >= 2
    for config in found:
        (tmp_path / "databus.yaml").write_text(yaml.safe_dump(without_files(config)))
        assert load(tmp_path / "databus.yaml").name == config["name"]


def configurations(rendered: bytes) -> Iterator[dict[str, Any]]:
    for each in filter(None, yaml.safe_load_all(rendered)):
        spec = each.get("spec", {})
        if pod := spec.get("template") or spec.get("driver", {}).get("template"):
            yield yaml.safe_load(pod["metadata"]["annotations"]["databus/config"])


def without_files(config: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration without the files that are in the pod only."""
    for section in ("source", "redis", "kafka"):
        for key in ("tls", "password_file"):
            config.get(section, {}).pop(key, None)
    if sasl := config["kafka"].get("sasl"):
        sasl["password"] = sasl.pop("password_file")
    config.get("dumps", {}).pop("api_key_file", None)
    for key in config.get("dumps", {}).get("api_keys", ()):
        key.pop("key_file", None)
        key.setdefault("sha256", "0" * 64)
    return config
