"""Redis with accounts and TLS."""

import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from databus_core.errors import InvalidSettings, RedisUnavailable
from databus_core.pipe import PublisherEnd
from databus_core.progress import Progress
from databus_core.redis_connection import connect_redis
from databus_core.settings.redis import RedisSection
from devstack import Stack
from devstack.certificates import Authority
from devstack.ports import free_ports

PASSWORD = secrets.token_hex(8)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    authority = Authority(tmp_path_factory.mktemp("authority"))
    for name in ("server", "client"):
        authority.issue(name)
    return authority


@pytest.fixture(scope="module")
def section(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The section `redis` for a TLS port that requires a certificate, and an account with a password."""
    stack, (port,) = Stack(tmp_path_factory.mktemp("redis"), own=True), free_ports(1)
    server, ca, client = (str(authority.folder / f"{name}.pem") for name in ("server", "ca", "client"))
    files = ["--tls-cert-file", server, "--tls-key-file", server, "--tls-ca-cert-file", ca]
    stack.start("redis", "--tls-port", str(port), *files, "--user", "app", "on", f">{PASSWORD}", "~*", "&*", "+@all")
    (authority.folder / "password").write_text(f"{PASSWORD}\n")
    yield {
        "url": f"rediss://127.0.0.1:{port}/0",
        "username": "app",
        "password_file": authority.folder / "password",
        "tls": {"ca_file": ca, "cert_file": client},
    }
    stack.discard()


async def test_the_pipe_runs_over_tls(section: dict[str, Any]) -> None:
    async with connect_redis(RedisSection.model_validate(section)) as redis:
        await PublisherEnd(redis, "shop").open(Progress())
        assert await redis.execute_command("ACL", "WHOAMI") == b"app"


async def test_each_wrong_setting_is_reported_in_one_line(section: dict[str, Any], tmp_path: Path) -> None:
    stranger = Authority(tmp_path)
    (_, port) = section["url"].removesuffix("/0").rsplit(":", 1)
    tls = section["tls"]
    for changed, said in (
        (
            {"password_file": None, "password": "wrong"},
            "Redis refuses the login: .* (check redis.username and redis.password_file)",
        ),
        (
            {"tls": tls | {"ca_file": stranger.ca}},
            "Redis has a certificate that cannot be trusted: .* (check redis.tls.ca_file)",
        ),
        (
            {"url": f"rediss://localhost:{port}/0"},
            "Redis has a certificate that cannot be trusted: .* (connect to a name that the certificate contains, or "
            "set redis.tls.verify_hostname to false)",
        ),
        ({"tls": {"ca_file": tls["ca_file"]}}, "Redis does not accept this client's certificate"),
        ({"tls": tls | {"cert_file": stranger.issue("client")}}, "Redis does not accept this client's certificate"),
    ):
        with pytest.raises(InvalidSettings, match=re.escape(said).replace(r"\.\*", ".*")) as caught:
            async with connect_redis(RedisSection.model_validate(section | changed)):
                pass
        assert len(str(caught.value).splitlines()) == 1
    with pytest.raises(RedisUnavailable, match=r"redis\.url"):
        async with connect_redis(RedisSection(url=f"redis://127.0.0.1:{port}/0")):
            pass


async def test_without_verify_hostname_the_host_name_need_not_match(section: dict[str, Any]) -> None:
    elsewhere = section["url"].replace("127.0.0.1", "localhost")
    tls = section["tls"] | {"verify_hostname": False}
    async with connect_redis(RedisSection.model_validate(section | {"url": elsewhere, "tls": tls})) as redis:
        assert await redis.ping()
