"""The configuration file: units, overrides and secrets; and its errors, one a line."""

from pathlib import Path

import pytest

from databus_core.errors import InvalidSettings
from databus_core.settings import (
    AnyStart,
    Log,
    StartAfterDump,
    StartAfterGtids,
    StartAt,
    StartAtTime,
    StartEarliest,
    StartLatest,
    load,
)


def write(folder: Path, text: str) -> Path:
    path = folder / "databus.yaml"
    path.write_text(text)
    return path


def test_sizes_durations_and_secrets_are_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hunter2\n")
    settings = load(
        write(
            tmp_path,
            f"""
            name: shop
            source:
              hosts: ["db1:3306"]
              password_file: {tmp_path}/secret
              include: ["shop.*"]
              exclude: ["shop.tmp_*"]
            reader: {{backlog_limit: 256MiB}}
            dumps: {{lease_ttl: 90s}}
            """,
        )
    )
    assert settings.source.password.get_secret_value() == "hunter2"
    assert "hunter2" not in repr(settings)
    login = settings.source.login(settings.source.hosts[0])
    assert (login.host, login.port) == ("db1", 3306)
    assert settings.reader.backlog_limit == 256 * 2**20
    assert settings.dumps.lease_ttl == 90
    assert settings.source.captures("shop", "orders")
    assert not settings.source.captures("shop", "tmp_x")
    assert not settings.source.captures("mysql", "user")


def test_properties_of_spark_are_text_and_secret_and_the_environment_adds_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABUS__SPARK__CONF__spark.hadoop.fs.s3a.secret.key", "hunter2")
    settings = load(write(tmp_path, "name: shop\nspark: {conf: {spark.executor.cores: 2, spark.ui.enabled: true}}"))
    assert {name: value.get_secret_value() for name, value in settings.spark.conf.items()} == {
        "spark.executor.cores": "2",
        "spark.ui.enabled": "true",
        "spark.hadoop.fs.s3a.secret.key": "hunter2",
    }
    assert "hunter2" not in repr(settings)


def test_the_environment_overrides_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABUS__SOURCE__USER", "from-env")
    settings = load(write(tmp_path, 'name: shop\nsource: {user: from-file, hosts: ["db1:1"]}'))
    assert (settings.source.user, settings.source.hosts) == ("from-env", ["db1:1"])


def test_the_environment_overrides_single_settings_of_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load(write(tmp_path, "name: shop")).log == Log(format="console", level="info", levels={})
    path = write(tmp_path, "name: shop\nlog: {level: debug, levels: {databus.reader: warning}}")
    monkeypatch.setenv("DATABUS__LOG__FORMAT", "json")
    assert load(path).log == Log(format="json", level="debug", levels={"databus.reader": "warning"})
    monkeypatch.setenv("DATABUS__LOG__LEVELS", '{"aiokafka": "info"}')
    assert load(path).log.levels == {"databus.reader": "warning", "aiokafka": "info"}


@pytest.mark.parametrize(("written", "meant"), [("null", "null"), ('"null"', "null"), ("string", "string")])
def test_null_need_not_be_quoted_where_it_is_a_choice(tmp_path: Path, written: str, meant: str) -> None:
    assert (
        load(write(tmp_path, f"name: shop\nspark: {{types: {{zero_dates: {written}}}}}")).spark.types.zero_dates
        == meant
    )


def test_variants_need_delta(tmp_path: Path) -> None:
    path = write(tmp_path, "name: shop\nspark: {table_format: iceberg, types: {json_columns: variant}}")
    with pytest.raises(InvalidSettings, match="json_columns: variant needs table_format: delta"):
        load(path)


def test_each_service_has_its_own_election_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABUS__PUBLISHER__ELECTION__RENEW", "500ms")
    settings = load(write(tmp_path, "name: shop\nreader: {election: {by: kubernetes}}"))
    assert (settings.reader.election.by, settings.reader.election.renew) == ("kubernetes", 2)
    assert (settings.publisher.election.by, settings.publisher.election.renew) == ("redis", 0.5)


def test_the_file_or_the_environment_enables_tls_of_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load(write(tmp_path, "name: shop")).source.tls is None
    tls = load(write(tmp_path, "name: shop\nsource: {tls: {}}")).source.tls
    assert tls and tls.verify == "full"
    monkeypatch.setenv("DATABUS__SOURCE__TLS__VERIFY", "none")
    tls = load(write(tmp_path, "name: shop")).source.tls
    assert tls and tls.verify == "none"


@pytest.mark.parametrize(
    ("tls", "message"),
    [
        ("{ca_file: FOLDER/none.pem}", "source.tls: FOLDER/none.pem: No such file"),
        ("{ca_file: FOLDER/databus.yaml}", "source.tls: FOLDER/databus.yaml: no PEM certificates"),
        ("{key_file: FOLDER/key.pem}", "source.tls: key_file needs a cert_file"),
        ("{verify: some}", "source.tls.verify: "),
        ("{ca: x}", "source.tls.ca: "),
    ],
)
def test_invalid_tls_settings_are_refused(tmp_path: Path, tls: str, message: str) -> None:
    folder = str(tmp_path)
    with pytest.raises(InvalidSettings, match=message.replace("FOLDER", folder)):
        load(write(tmp_path, f"name: shop\nsource: {{tls: {tls.replace('FOLDER', folder)}}}"))


def test_all_errors_are_reported_at_once_each_with_the_path_of_its_key(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
        name: "not a name"
        surprise: 1
        source: {hosts: ["nowhere"], usr: x}
        reader: {backlog_limit: many}
        publisher: {topic: "{tabel}"}
        source2: {}
        """,
    )
    with pytest.raises(InvalidSettings) as caught:
        load(path)
    lines = str(caught.value).splitlines()
    named = {line.removeprefix(f"{path}: ").split(":")[0] for line in lines}
    sections = {"name", "surprise", "source2"}
    assert named == sections | {"source.hosts.0", "source.usr", "reader.backlog_limit", "publisher.topic"}


def test_errors_of_several_settings_together_name_each_key(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
        name: databus
        source: {include: ["progress.*", "shop.t"]}
        publisher:
          routes:
            - {match: ["*.*"]}
            - {match: ["shop.t"], output: other}
        """,
    )
    with pytest.raises(InvalidSettings) as caught:
        load(path)
    first, second = str(caught.value).splitlines()
    assert first.startswith(f"{path}: publisher.routes: rule 1: topic: topics like databus.progress.x are for")
    assert second.startswith(f"{path}: publisher.routes: rule 2: topic: databus.shop.t is the topic of shop.t")


def test_an_empty_list_of_rules_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match=r"publisher\.routes: the list has no rule"):
        load(write(tmp_path, "name: shop\npublisher: {routes: []}"))


@pytest.mark.parametrize("text", ["- a list", "name: [unclosed", ""])
def test_a_file_that_is_not_a_yaml_mapping_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidSettings, match=r"databus\.yaml"):
        load(write(tmp_path, text))


@pytest.mark.parametrize(
    "text", ['"hunter2', "hunter2: x", "!hunter2 x", "*hunter2", "[hunter2", "{hunter2: [}", "@hunter2"]
)
def test_the_error_for_invalid_yaml_does_not_quote_the_file(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidSettings, match=r"not valid YAML at line \d+, column \d+") as caught:
        load(write(tmp_path, f"name: shop\nsource:\n  password: {text}\n  user: x\n"))
    assert "hunter2" not in str(caught.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="No such file"):
        load(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("DATABUS__SOURCES__USER", "x", "DATABUS__SOURCES__USER overrides nothing"),
        ("DATABUS__SOURCE__HOST", "x", "there is no source.host"),
        ("DATABUS__SOURCE__TLS__CA", "x", "there is no source.tls.ca"),
        ("DATABUS__SOURCE__HOSTS", "db1:3306", "JSON"),
    ],
)
def test_an_invalid_override_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, message: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(InvalidSettings, match=message):
        load(write(tmp_path, "name: shop"))


@pytest.mark.parametrize("text", ["1: x", 'name: shop\nkafka: {bootstrap_servers: ["k:99999"]}'])
def test_one_invalid_key_or_value_is_reported_in_one_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidSettings) as caught:
        load(write(tmp_path, text))
    assert len(str(caught.value).splitlines()) == 1


def test_each_pipeline_has_its_own_server_id(tmp_path: Path) -> None:
    ids = {load(write(tmp_path, f"name: {name}")).server_id for name in ("shop", "stock")}
    assert len(ids) == 2
    settings = load(write(tmp_path, "name: shop\nreader: {server_id: 7}"))
    assert settings.server_id == 7
    assert len({*ids, settings.server_id, settings.second_server_id, settings.command_server_id}) == 5


def test_topic_settings_become_text_as_kafka_expects_it(tmp_path: Path) -> None:
    text = "name: shop\npublisher: {topic_settings: {retention.ms: 1000, preallocate: true, cleanup.policy: compact}}"
    settings = load(write(tmp_path, text)).publisher.topic_settings
    assert settings == {"retention.ms": "1000", "preallocate": "true", "cleanup.policy": "compact"}
    with pytest.raises(InvalidSettings, match=r"publisher\.topic_settings\.retention\.ms"):
        load(write(tmp_path, "name: shop\npublisher: {topic_settings: {retention.ms: [1]}}"))


@pytest.mark.parametrize(
    ("publisher", "needed"),
    [
        ("{format: maxwell-json}", False),
        ("{format: maxwell-json, options: {output_row_query: true}}", True),
        ("{format: maxwell-json, options: {output_row_query: false}}", False),
        (
            "{routes: [{match: ['*.*']},"
            " {match: ['shop.*'], output: o, topic: 'o.{table}', options: {include_query: true}}]}",
            True,
        ),
        ("{options: {include_query: true}, routes: [{match: ['*.*'], format: databus}]}", False),
        ("{options: {include_query: true}, routes: [{match: ['*.*'], drop: true}]}", False),
    ],
)
def test_statements_are_needed_if_a_rule_that_publishes_something_has_an_option_for_them(
    tmp_path: Path, publisher: str, needed: bool
) -> None:
    assert load(write(tmp_path, f"name: shop\npublisher: {publisher}")).publisher.needs_statements == needed


GTID_SET = "896e7882-18fe-11ef-ab88-22222d34d411:1-5:blue:7"


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("latest", StartLatest()),
        ("earliest", StartEarliest()),
        ("mysql-bin.000007:4", StartAt("mysql-bin.000007", 4)),
        (f"gtid:{GTID_SET}", StartAfterGtids(GTID_SET)),
        ("gtid:0-1-9", StartAfterGtids("0-1-9")),
        ("time:2026-11-20T10:00:00Z", StartAtTime("2026-11-20T10:00:00Z")),
        ("dump:d-1", StartAfterDump("d-1")),
    ],
)
def test_a_start_position_has_one_of_six_forms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, start: AnyStart
) -> None:
    assert load(write(tmp_path, f'name: shop\nreader: {{start: "{text}"}}')).reader.start == start
    assert str(start) == text
    monkeypatch.setenv("DATABUS__READER__START", text)
    assert load(write(tmp_path, "name: shop")).reader.start == start


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ("newest", "expected latest, snapshot, earliest, FILE:OFFSET"),
        ("mysql-bin.000007", "expected latest, snapshot, earliest, FILE:OFFSET"),
        ("mysql-bin.000007:3", "expected latest, snapshot, earliest, FILE:OFFSET"),
        ("gtid:", "expected latest, snapshot, earliest, FILE:OFFSET"),
        ("gtid:1-2", "'1-2' is not a GTID set of MySQL or MariaDB"),
        ("time:", "'' is not a time; write it as 2026-11-20T10:00:00Z"),
        ("time:yesterday", "'yesterday' is not a time; write it as 2026-11-20T10:00:00Z"),
        ("time:2026-11-20T10:00:00", "'2026-11-20T10:00:00' has no time zone; append Z for UTC, or an offset"),
        ("time:2026-11-20", "'2026-11-20' has no time zone"),
    ],
)
def test_an_invalid_start_position_is_refused(tmp_path: Path, start: str, message: str) -> None:
    with pytest.raises(InvalidSettings, match=f"reader.start: {message}"):
        load(write(tmp_path, f'name: shop\nreader: {{start: "{start}"}}'))


@pytest.mark.parametrize(
    ("text", "time_us"),
    [
        ("2026-11-20T10:00:00Z", 1_795_168_800_000_000),
        ("2026-11-20T11:00:00+01:00", 1_795_168_800_000_000),
        ("2026-11-20 04:30:00.000001-05:30", 1_795_168_800_000_001),
        ("1969-12-31T23:59:59Z", -1_000_000),
    ],
)
def test_a_start_time_is_counted_from_the_epoch(text: str, time_us: int) -> None:
    assert StartAtTime(text).time_us == time_us


def test_a_host_that_is_listed_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match=r"source\.hosts: db1:1 is listed twice"):
        load(write(tmp_path, 'name: shop\nsource: {hosts: ["db1:1", "db2:1", "db1:1"]}'))
