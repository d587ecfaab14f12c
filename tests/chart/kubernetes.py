"""The cluster that kubectl uses, through kubectl and Helm."""

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from common.waiting import cancelled

#: between two questions, each of which starts a kubectl
POLL_SECONDS = 0.25
#: the program for the chart; set HELM=helm3 to use another one than `helm`
HELM = os.environ.get("HELM", "helm")


class CommandFailed(Exception):
    """A command has failed. The message has its last words."""


async def command(*words: str, text: str = "") -> str:
    """Run a command with this text as its input, and return its output. Raises CommandFailed."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*words, stdin=pipe, stdout=pipe, stderr=pipe)
    try:
        output, errors = await process.communicate(text.encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise CommandFailed(f"{' '.join(words)}: {output.decode()[-2000:]}{errors.decode()[-4000:]}")
    return output.decode()


class Namespace:
    """A namespace of the cluster."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def kubectl(self, *words: str, text: str = "") -> str:
        """Run kubectl in the namespace. Raises CommandFailed."""
        return await command("kubectl", "--namespace", self.name, *words, text=text)

    async def helm(self, *words: str) -> str:
        """Run Helm in the namespace. Raises CommandFailed."""
        return await command(HELM, "--namespace", self.name, *words)

    async def get(self, *words: str) -> Any:
        """Return what `kubectl get` returns: an object, or `{"items": […]}`."""
        return json.loads(await self.kubectl("get", "--output", "json", *words))

    async def create(self, standard: str) -> None:
        """Create the namespace, whose pods must follow this Pod Security Standard."""
        labels = {"pod-security.kubernetes.io/enforce": standard}
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name, "labels": labels}}
        await command("kubectl", "apply", "--filename", "-", text=json.dumps(manifest))

    async def delete(self) -> None:
        """Delete the namespace, and wait until it is gone."""
        await command("kubectl", "delete", "namespace", self.name, "--wait", "--ignore-not-found")

    async def secret(self, name: str, **content: str) -> None:
        """Create a Secret, or replace its content."""
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": content}
        await self.kubectl("apply", "--filename", "-", text=json.dumps(body))

    async def python(self, pod: str, program: str, *arguments: str) -> str:
        """Run a Python program in a pod, and return its output. Raises CommandFailed."""
        return await self.kubectl("exec", pod, "--", "python", "-c", program, *arguments)

    @asynccontextmanager
    async def forwarded(self, service: str, port: int, own_port: int) -> AsyncIterator[None]:
        """Forward a port of this machine to a service, again and again if kubectl ends."""
        task = asyncio.create_task(self._forward(service, f"{own_port}:{port}"))
        try:
            yield
        finally:
            await cancelled(task)

    async def _forward(self, service: str, ports: str) -> None:
        words = ["kubectl", "--namespace", self.name, "port-forward", f"service/{service}", ports]
        nowhere = asyncio.subprocess.DEVNULL
        while True:
            process = await asyncio.create_subprocess_exec(*words, stdout=nowhere, stderr=nowhere)
            try:
                await process.wait()
                await asyncio.sleep(POLL_SECONDS)
            finally:
                if process.returncode is None:
                    process.terminate()
                    await process.wait()


def why_not() -> str:
    """Return why the tests cannot run here; an empty text if they can."""
    for program in "kubectl", HELM:
        if not shutil.which(program):
            return f"there is no {program} on PATH"
    try:
        subprocess.run(["kubectl", "get", "--raw", "/readyz"], capture_output=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return "kubectl reaches no cluster"
    return ""
