"""A Prometheus that watches a pipeline."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx


def configured(home: Path, urls: Iterable[str], rules: str, *, every: int) -> str:
    """Write the configuration of a Prometheus that scrapes `urls` and evaluates `rules` every so many seconds.

    Returns the option with which to start it.
    """
    home.mkdir(parents=True, exist_ok=True)
    targets = [url.removeprefix("http://") for url in urls]
    jobs = [{"job_name": "databus", "static_configs": [{"targets": targets}]}]
    times = {"scrape_interval": f"{every}s", "scrape_timeout": f"{every}s", "evaluation_interval": f"{every}s"}
    (home / "rules.yaml").write_text(rules)
    path = home / "prometheus.yaml"
    path.write_text(json.dumps({"global": times, "rule_files": ["rules.yaml"], "scrape_configs": jobs}))
    return f"--config.file={path}"


@dataclass
class Alerts:
    """What a Prometheus knows."""

    client: httpx.AsyncClient

    async def active(self) -> list[dict[str, Any]]:
        """Return the alerts that are pending or firing."""
        alerts: list[dict[str, Any]] = (await self._get("/api/v1/alerts"))["alerts"]
        return alerts

    async def firing(self) -> set[str]:
        """Return the names of the alerts that fire, without the common prefix."""
        found = [alert for alert in await self.active() if alert["state"] == "firing"]
        return {alert["labels"]["alertname"].removeprefix("Databus") for alert in found}

    async def values(self, query: str) -> list[float]:
        """Return the values of a query now, in the order of their labels."""
        found = (await self._get("/api/v1/query", query=query))["result"]
        return [float(each["value"][1]) for each in sorted(found, key=lambda each: sorted(each["metric"].items()))]

    async def _get(self, path: str, **parameters: str) -> Any:
        return (await self.client.get(path, params=parameters)).raise_for_status().json()["data"]
