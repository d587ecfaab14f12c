"""The files that `databus init` writes, and what it asks."""

import io
import stat
from pathlib import Path

import pytest
import yaml

from databus_cli.__main__ import main
from databus_cli.init.texts import select_target
from databus_core.settings import StartSnapshot, load


class Terminal(io.StringIO):
    """Standard input of a person who types these lines."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    return tmp_path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_file_can_be_loaded_and_has_no_secret(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hosts = ["--hosts", "db1:3306", "db2:3306", "--tables", "shop.*", "crm.a_b", "--kafka", "k:9092"]
    assert main(["init", "--name", "shop_1", *hosts, "--user", "o'hara", "--start", "latest"]) == 0
    settings = load(folder / "databus.yaml")
    assert (settings.name, settings.source.hosts, settings.source.user) == (
        "shop_1",
        ["db1:3306", "db2:3306"],
        "o'hara",
    )
    assert settings.source.include == ["shop.*", "crm.a_b"]
    password = settings.source.password.get_secret_value()
    assert (folder / "databus-password").read_text() == f"{password}\n"
    assert mode(folder / "databus-password") == 0o600
    assert password not in (folder / "databus.yaml").read_text()
    out, err = capsys.readouterr()
    assert f"CREATE USER 'o''hara'@'%' IDENTIFIED BY '{password}';" in out
    assert "GRANT SELECT ON `shop`.* TO 'o''hara'@'%';\nGRANT SELECT ON `crm`.`a_b` TO" in out
    assert password not in err
    assert "databus check --config databus.yaml" in err.splitlines()[-1]


def test_without_a_terminal_the_defaults_are_taken(folder: Path) -> None:
    assert main(["init"]) == 0
    settings = load(folder / "databus.yaml")
    assert (settings.name, settings.source.include, settings.reader.start) == ("shop", ["shop.*"], StartSnapshot())


def test_a_terminal_is_asked_and_a_wrong_answer_is_asked_for_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = "crm\noracle\nmysql\ndb1\ndb1:3306, db2:3306\n\nredis://:secret@r:6379/0\n\n\nlatest\n"
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    assert main(["init", "--sql", "prepare.sql", "--user", "cdc"]) == 0
    settings = load(folder / "databus.yaml")
    assert (settings.name, settings.source.hosts, settings.source.user) == ("crm", ["db1:3306", "db2:3306"], "cdc")
    assert (settings.source.include, str(settings.reader.start)) == (["crm.*"], "latest")
    out, err = capsys.readouterr()
    assert out == ""
    wrong = [line.partition("databus: ")[2] for line in err.splitlines() if "must " in line]
    assert [line.split(",")[0] for line in wrong] == [
        "must be one of mariadb",
        "must be host:port",
        "the URL must not contain a password: put it into a file",
    ]
    assert "gtid_mode = ON" in (folder / "prepare.sql").read_text()
    assert mode(folder / "prepare.sql") == 0o600


@pytest.mark.parametrize("existing", ["databus.yaml", "prepare.sql"])
def test_a_file_is_overwritten_only_with_force(folder: Path, capsys: pytest.CaptureFixture[str], existing: str) -> None:
    (folder / existing).write_text("mine")
    assert main(["init", "--sql", "prepare.sql"]) == 2
    assert f"{existing} exists: give another file, or --force" in capsys.readouterr().err
    assert [each.name for each in folder.iterdir()] == [existing]
    assert (folder / existing).read_text() == "mine"
    (folder / "databus-password").write_text("it's\\mine\n")
    assert main(["init", "--sql", "prepare.sql", "--force"]) == 0
    assert yaml.safe_load((folder / "databus.yaml").read_text())["name"] == "shop"
    assert "IDENTIFIED BY 'it''s\\\\mine'" in (folder / "prepare.sql").read_text()


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--name", "a b", "--name: must be 1 to 63 of"),
        ("--hosts", "db1", "--hosts: must be host:port"),
        ("--tables", "orders", "--tables: must be schema.table"),
        ("--redis", "localhost", "--redis: not a URL such as"),
        ("--redis", "redis://:secret@r:6379/0", "set redis.password_file"),
        ("--user", "", "--user: must not be empty"),
    ],
)
def test_a_wrong_option_is_wrong_usage_and_nothing_is_written(
    folder: Path, capsys: pytest.CaptureFixture[str], option: str, value: str, said: str
) -> None:
    assert main(["init", option, value]) == 2
    assert said in capsys.readouterr().err
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("pattern", "target"),
    [
        ("shop.*", "`shop`.*"),
        ("my_shop.order?", "`my\\_shop`.*"),
        ("my_shop.my_orders", "`my_shop`.`my_orders`"),
        ("sh*.orders", "*.*"),
        ("a`b.c`d", "`a``b`.`c``d`"),
    ],
)
def test_select_is_granted_on_the_smallest_object(pattern: str, target: str) -> None:
    assert select_target(pattern) == target
