"""The examples of docs/guide/deploy.md are valid configurations."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from databus_core.settings import load
from devstack.certificates import Authority

GUIDE = (Path(__file__).parents[3] / "docs/guide/deploy.md").read_text()
BLOCKS = re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """A folder with the files that the examples expect in /run/secrets."""
    authority = Authority(tmp_path)
    pem = authority.issue("client").read_bytes()
    for folder in ("kafka-tls", "redis-tls"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "ca.crt").write_bytes(authority.ca.read_bytes())
        for name in ("tls.crt", "tls.key"):
            (tmp_path / folder / name).write_bytes(pem)
    for name in ("kafka-password", "kafka-client-secret", "redis-password"):
        (tmp_path / name).write_text("hunter2\n")
    return tmp_path


def example(words: str, secrets: Path) -> dict[str, Any]:
    """Parse the only example that contains these words."""
    (text,) = (block for block in BLOCKS if words in block)
    return yaml.safe_load(text.replace("/run/secrets", str(secrets)))


def load_text(folder: Path, values: dict[str, Any]) -> Any:
    path = folder / "databus.yaml"
    path.write_text(yaml.safe_dump({"name": "shop"} | values))
    return load(path)


def test_the_example_of_a_login_with_a_password_is_valid(secrets: Path) -> None:
    kafka = load_text(secrets, example("SCRAM-SHA-512        #", secrets)).kafka  # not the Compose example
    assert (kafka.security_protocol, kafka.sasl.password.get_secret_value()) == ("SASL_SSL", "hunter2")


def test_the_example_of_a_login_with_a_token_is_valid(secrets: Path) -> None:
    section = example("OAUTHBEARER", secrets)
    kafka = load_text(secrets, {"kafka": {"security_protocol": "SASL_SSL"} | section}).kafka
    assert kafka.sasl.oauth.client_secret.get_secret_value() == "hunter2"


def test_the_example_of_a_client_certificate_is_valid(secrets: Path) -> None:
    kafka = load_text(secrets, example("tls.crt", secrets)).kafka
    assert (kafka.security_protocol, kafka.tls.key_file.name) == ("SSL", "tls.key")


def test_the_example_of_redis_is_valid(secrets: Path) -> None:
    redis = load_text(secrets, example("rediss://", secrets)).redis
    assert (redis.username, redis.password.get_secret_value()) == ("databus", "hunter2")


def test_the_compose_example_overrides_settings_and_gives_the_reader_all_secrets(
    secrets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compose = example("services:", secrets)
    assert compose["services"]["reader"]["secrets"] == list(compose["secrets"])
    for variable, value in compose["services"]["reader"]["environment"].items():
        monkeypatch.setenv(variable, value)
    kafka = load_text(secrets, {"kafka": {"bootstrap_servers": ["kafka:9092"]}}).kafka
    assert kafka.bootstrap_servers == ["b-1.kafka.example:9096"]
    assert kafka.sasl.password.get_secret_value() == "hunter2"
