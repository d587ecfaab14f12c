"""compose.yaml: its variables are in .env.example, three of them choose a database, and its probes ask the services."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from common.compose_file import DEFAULTS, compose_file

ROOT = Path(__file__).parents[3]
COMPOSE = compose_file()
SERVICES: dict[str, Any] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if "build" in service}


def test_the_example_of_an_environment_has_every_variable_with_its_default() -> None:
    lines = (ROOT / ".env.example").read_text().splitlines()
    assert dict(line.split("=", 1) for line in lines if line and not line.startswith("#")) == DEFAULTS


def test_three_variables_choose_a_database() -> None:
    other = compose_file(DATABUS_HOSTS="db1:3306, db2:3306", DATABUS_PASSWORD="s3cret", DATABUS_TABLES="crm.*, b.c")
    settings = yaml.safe_load(other["configs"]["databus"]["content"])
    assert settings["source"]["hosts"] == ["db1:3306", "db2:3306"]
    assert settings["source"]["include"] == settings["spark"]["tables"] == ["crm.*", "b.c"]
    assert other["configs"]["password"]["content"] == "s3cret"
    for service in OURS.values():
        assert service["depends_on"].get("mariadb", {"required": False})["required"] is False


def test_only_the_pipeline_starts_without_a_profile() -> None:
    profiles = {name: service["profiles"] for name, service in SERVICES.items() if "profiles" in service}
    assert profiles.pop("prometheus") == profiles.pop("grafana") == ["observability"]
    assert profiles == {"mysql": ["mysql"], "load": ["load"]}


def test_every_port_is_on_the_loopback_address() -> None:
    for service in SERVICES.values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


@pytest.mark.parametrize("name", OURS)
def test_a_change_of_what_an_image_is_built_from_builds_it_again(name: str) -> None:
    service = OURS[name]
    assert service["build"]["args"]["SERVICE"] == name
    watched = [rule["path"] for rule in service["develop"]["watch"]]
    assert watched == ["libs", f"services/{name}", f"requirements/{name}.txt"]
    assert all((ROOT / path).exists() for path in watched)


def test_files_that_are_mounted_exist() -> None:
    sources = [volume.split(":")[0] for service in SERVICES.values() for volume in service.get("volumes", [])]
    folders = [ROOT / source for source in sources if source.startswith(".")]
    assert len(folders) == 4
    assert all(folder.exists() for folder in folders)


def test_prometheus_reads_every_service() -> None:
    jobs = yaml.safe_load(COMPOSE["configs"]["prometheus"]["content"])["scrape_configs"]
    targets = {config["labels"]["service"]: config["targets"] for job in jobs for config in job["static_configs"]}
    assert targets == {name: [f"{name}:{service['environment']['READY_PORT']}"] for name, service in OURS.items()}


@pytest.mark.parametrize("status", ["200 OK", "503 Service Unavailable"])
async def test_a_probe_of_a_service_prints_why_it_is_not_ready(status: str) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"GET /readyz HTTP/1.0\r\n")
        writer.write(f"HTTP/1.1 {status}\r\nconnection: close\r\n\r\nKafka is away\n".encode())
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = str(server.sockets[0].getsockname()[1])
    code, output = await probe(port)
    server.close()
    assert (code == 0) is (status == "200 OK")
    assert output == (b"" if code == 0 else b"Kafka is away\n")
    assert (await probe(port))[0] != 0, "nobody listens"


async def probe(port: str) -> tuple[int, bytes]:
    (test,) = {tuple(service["healthcheck"]["test"]) for service in OURS.values()}
    command, *arguments = test[1:]
    assert not re.search(r"python", " ".join(test))
    environment = {"READY_PORT": port, "PATH": "/usr/bin:/bin"}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(command, *arguments, env=environment, stdout=pipe, stderr=pipe)
    output, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output
