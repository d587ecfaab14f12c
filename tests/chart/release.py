"""A release of the chart, and its pods."""

import json
import os
from pathlib import Path
from typing import Any

import yaml

from chart.kubernetes import HELM, POLL_SECONDS, Namespace, command
from chart.workload import SCHEMA, TOPIC
from common.waiting import eventually

CHART = Path(__file__).parents[2] / "charts/databus"
NAME = "databus"
PASSWORD = "first password"
DUMP_API_KEY = "any key"
#: the leases of reader and publisher are renewed so often, in seconds
RENEW = 2
_WAIT_SECONDS = 300
#: Process 1 of a container ignores the SIGKILL of other processes in there. This sets a limit of CPU seconds that it
#: has already passed, so the kernel kills it.
_KILL = "import resource; resource.prlimit(1, resource.RLIMIT_CPU, (1, 1))"


class Release:
    """The chart, installed in a namespace whose pods must follow the standard `restricted`."""

    def __init__(self, namespace: Namespace, servers: Namespace, node: str) -> None:
        self.namespace = namespace
        self._values = _merged(_values(servers.name, node), _own_values())
        #: the revision that was installed last
        self.revision = 0
        #: the values of each
        self._installed: dict[int, dict[str, Any]] = {}

    async def apply(self, changes: dict[str, Any] | None = None, *, seconds: int = _WAIT_SECONDS) -> None:
        """Install or upgrade the release with the values of before and these changes, and wait for it.

        The changes hold for later calls, too, if this one succeeds. Raises CommandFailed.
        """
        values = _merged(self._values, changes or {})
        wait = ["--install", "--wait", "--timeout", f"{seconds}s", "--values", "-"]
        await command(
            HELM, "--namespace", self.namespace.name, "upgrade", NAME, str(CHART), *wait, text=yaml.safe_dump(values)
        )
        await self._note(values)

    async def test(self) -> None:
        """Run `helm test`. Raises CommandFailed."""
        await self.namespace.helm("test", NAME)

    async def rollback(self, revision: int) -> None:
        """Go back to a revision that was installed. Raises CommandFailed."""
        await self.namespace.helm("rollback", NAME, str(revision), "--wait", "--timeout", f"{_WAIT_SECONDS}s")
        await self._note(self._installed[revision])

    async def _note(self, values: dict[str, Any]) -> None:
        """Note what is installed now."""
        [shown] = json.loads(await self.namespace.helm("history", NAME, "--max", "1", "--output", "json"))
        self.revision, self._values = shown["revision"], values
        self._installed[self.revision] = values

    async def uninstall(self) -> None:
        """Remove the release."""
        await self.namespace.helm("uninstall", NAME, "--wait", "--ignore-not-found")

    async def pods(self, component: str) -> dict[str, dict[str, Any]]:
        """Return the pods of a component that are not being deleted, by name."""
        found = await self.namespace.get("pods", "--selector", f"app.kubernetes.io/component={component}")
        return {pod["metadata"]["name"]: pod for pod in found["items"] if "deletionTimestamp" not in pod["metadata"]}

    async def until_ready(self, component: str, count: int, *, seconds: float = _WAIT_SECONDS) -> set[str]:
        """Wait until a component has so many pods, all ready, and return their names."""

        async def ready() -> set[str] | None:
            pods = await self.pods(component)
            return set(pods) if len(pods) == count and all(map(is_ready, pods.values())) else None

        return await eventually(ready, seconds=seconds, pause=POLL_SECONDS) or set()

    async def holder(self, role: str) -> str:
        """Return the pod that holds the lease of a role; an empty text if none does."""
        lease = await self.namespace.get("lease", f"databus-{TOPIC}-{role}")
        return pod_of(lease.get("spec", {}).get("holderIdentity") or "")

    async def kill(self, pod: str) -> None:
        """Let the kernel end the service in a pod at once, without a signal that it could handle."""
        await self.namespace.python(pod, _KILL)


def pod_of(holder: str) -> str:
    """Return the name of the pod in a holder's identity."""
    return holder.partition(":")[0]


def image(name: str) -> str:
    """Return the image of a program, as the chart composes it."""
    values = {"repository": "databus", "tag": yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]}
    values |= _own_values().get("image", {})
    registry = f"{values['registry']}/" if values.get("registry") else ""
    return f"{registry}{values['repository']}-{name}:{values['tag']}"


def is_ready(pod: dict[str, Any]) -> bool:
    """Return whether a pod is ready."""
    conditions = pod["status"].get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _own_values() -> dict[str, Any]:
    """Return the values of the file that CHART_TEST_VALUES names, such as the images' registry."""
    path = os.environ.get("CHART_TEST_VALUES")
    return yaml.safe_load(Path(path).read_text()) if path else {}


def _values(servers: str, node: str) -> dict[str, Any]:
    election = {"election": {"by": "kubernetes", "renew": f"{RENEW}s"}}
    client = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": servers}},
               "podSelector": {"matchLabels": {"app": "client"}}}]  # fmt: skip
    ports = (3306, 6379, 9092)
    egress = {"to": [client[0] | {"podSelector": {}}], "ports": [{"port": port} for port in ports]}
    return {
        "config": {
            "name": TOPIC,
            "source": {"hosts": [f"mariadb.{servers}:3306"], "include": [f"{SCHEMA}.*"]},
            "redis": {"url": f"redis://redis.{servers}:6379/0"},
            "kafka": {"bootstrap_servers": [f"kafka.{servers}:9092"]},
            "reader": election,
            "publisher": election | {"topic": "{name}"},
        },
        "sourcePassword": {"secretName": "source"},
        "dumpApiKey": {"secretName": "dump-api"},
        "reader": {"replicas": 2},
        "publisher": {"replicas": 2},
        "dumpApi": {"persistence": {"existingClaim": "dumps"}},
        "sparkSink": {"enabled": False},
        # all on one node: its drain leaves no place for new pods, and dump-api's replicas share a volume
        "nodeSelector": {"kubernetes.io/hostname": node},
        "networkPolicy": {
            "enabled": True,
            "dumpApiFrom": client,
            "metricsFrom": client,
            # the API server's port as pods see it, and as it listens
            "egress": [egress, {"ports": [{"port": 443}, {"port": 6443}]}],
        },
    }


def _merged(values: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return values with changes, as Helm merges them: lists are replaced."""
    merged = dict(values)
    for key, value in changes.items():
        old = values.get(key)
        merged[key] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged
