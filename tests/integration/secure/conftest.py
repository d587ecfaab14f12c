"""A Kafka with listeners for logins and for certificates, and a plaintext one for the tests themselves."""

import json
from pathlib import Path

import pytest

from common.token_endpoint import Signer
from devstack import Server, Stack
from devstack.certificates import Authority
from integration.secure.settings import Section


@pytest.fixture(scope="session")
def kafka(secure_kafka: Server) -> Server:
    """The server, whose `url` is the plaintext listener."""
    return secure_kafka


@pytest.fixture
def source(mariadb: Server) -> Server:
    return mariadb


@pytest.fixture(scope="session")
def folder(devstack: Stack, secure_kafka: Server) -> Path:
    return devstack.home / secure_kafka.kind


@pytest.fixture(scope="session")
def sections(folder: Path) -> dict[str, Section]:
    return {name: json.loads((folder / f"{name}.json").read_text()) for name in ("scram", "mtls")}


@pytest.fixture(scope="session")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    authority = Authority(tmp_path_factory.mktemp("stranger"))
    authority.issue("client")
    return authority


@pytest.fixture(params=["scram", "mtls"])
def section(request: pytest.FixtureRequest, sections: dict[str, Section]) -> Section:
    """The section `kafka` of a configuration: with a password, then with a certificate."""
    return sections[request.param]


@pytest.fixture(scope="session")
def signer(folder: Path) -> Signer:
    return Signer(folder / "jwks.json")
