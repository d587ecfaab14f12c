"""The settings of login and TLS for Redis."""

from pathlib import Path

import pytest

from databus_core.errors import InvalidSettings
from databus_core.redis_connection import redis_client
from databus_core.settings import load


def write(folder: Path, redis: str) -> Path:
    path = folder / "databus.yaml"
    path.write_text(f"name: shop\nredis: {redis}".replace("FOLDER", str(folder)))
    (folder / "password").write_text("hunter2\n")
    return path


def test_user_and_password_can_be_set_outside_of_the_url(tmp_path: Path) -> None:
    settings = load(write(tmp_path, "{url: 'redis://r:1/0', username: app, password_file: FOLDER/password}"))
    login = redis_client(settings.redis).connection_pool.connection_kwargs
    assert (login["host"], login["username"], login["password"]) == ("r", "app", "hunter2")
    assert "hunter2" not in repr(settings)


def test_a_password_in_the_url_is_not_shown(tmp_path: Path) -> None:
    settings = load(write(tmp_path, "{url: 'redis://app:hunter2@r:1/0'}"))
    assert redis_client(settings.redis).connection_pool.connection_kwargs["password"] == "hunter2"
    assert "hunter2" not in repr(settings)


@pytest.mark.parametrize(
    ("redis", "message"),
    [
        ("{url: 'localhost:6379'}", "redis.url: not a URL such as redis://host:6379/0"),
        ("{url: 'http://localhost:6379'}", "redis.url: not a URL such as redis://host:6379/0"),
        ("{url: 'redis://:hunter2/x@localhost:6379'}", "redis.url: not a URL such as redis://host:6379/0"),
        ("{url: 'redis://r:1', tls: {}}", "redis: tls needs a url that begins with rediss://, not with redis://"),
        ("{url: 'rediss://r:1', tls: {ca_file: FOLDER/none}}", "redis.tls: FOLDER/none: No such file"),
        ("{url: 'redis://:a@r:1', password: hunter2}", "redis: url has a password, and password or"),
        ("{url: 'redis://b:a@r:1', username: app}", "redis: url has a user name, and username is set, too"),
        ("{password_file: FOLDER/none}", "redis: password_file cannot be read: No such file"),
    ],
)
def test_an_invalid_setting_is_reported_in_one_line(tmp_path: Path, redis: str, message: str) -> None:
    with pytest.raises(InvalidSettings) as caught:
        load(write(tmp_path, redis))
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"{tmp_path}/databus.yaml: {message}".replace("FOLDER", str(tmp_path)))
    assert "hunter2" not in line
