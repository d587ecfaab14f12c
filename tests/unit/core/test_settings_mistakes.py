"""Mistakes in databus.yaml and in the environment: each is one line with what is wrong, where, and what to write."""

from pathlib import Path

import pytest

from databus_core.errors import InvalidSettings
from databus_core.settings import load

HOST_PORT = "must be host:port, for example db1:3306, kafka1:9092 or [::1]:9101, not "
IN_FILE = {
    # wrong keys
    "source: {host: 'db1:3306'}": "source.host: there is no such key; did you mean hosts?",
    "source: {port: 3306}": "source.port: there is no such key; known are hosts, user, password, password_file, tls, "
    "include, exclude, connect_timeout",
    "kaffka: {}": "kaffka: there is no such key; did you mean kafka?",
    "redis: {tls: {Verify_Hostname: no}}": "redis.tls.Verify_Hostname: there is no such key; did you mean "
    "verify_hostname?",
    "publisher: {routes: [{match: [a.b], where: [{column: c, equal: 1}]}]}": "publisher.routes: rule 1: where.0.equal: "
    "there is no such key; did you mean equals?",
    "publisher: {routes: [{topic: t}]}": "publisher.routes: rule 1: match: is missing; this key is required",
    # another kind of value
    "source: {hosts: 'db1:3306'}": "source.hosts: must be a list, as in [A, B], not text",
    "source: {hosts: []}": "source.hosts: must not be empty",
    "source: {tls: true}": "source.tls: must be a mapping, as in {KEY: VALUE}, not true or false",
    "source:": "source: has no keys; indent them under it, or remove it",
    "source: {password: 12345}": "source.password: must be text, not a number; write it in quotes",
    "source: {user: [a]}": "source.user: must be text, not a list",
    "source: {password_file: 1}": "source.password_file: must be a path, not a number",
    "source:\n  password: #hunter2": "source.password: has no value; write text that begins with # in quotes",
    "publisher: {partitions: many}": "publisher.partitions: must be a whole number, not 'many'",
    "publisher: {partitions: 1.5}": "publisher.partitions: must be a whole number, not 1.5",
    # another form of text
    "source: {hosts: [db1]}": f"source.hosts.0: {HOST_PORT}'db1'",
    "source: {hosts: ['mysql://root:hunter2@db1:3306']}": f"source.hosts.0: {HOST_PORT}'…@db1:3306'",
    "reader: {listen: localhost}": f"reader.listen: {HOST_PORT}'localhost'",
    "source: {include: [customers]}": "source.include.0: must be schema.table, where * and ? are wildcards, for "
    "example shop.* or shop.orders, not 'customers'",
    "dumps: {storage: 's3:///dumps'}": "dumps.storage: must be a folder as a URL, for example "
    "file:///var/lib/databus/data or s3://bucket/prefix, not 's3:///dumps'",
    "publisher: {claim_checks: 'file://claims'}": "publisher.claim_checks: must be a folder as a URL, for example "
    "file:///var/lib/databus/data or s3://bucket/prefix, not 'file://claims'",
    "dumps: {formats: [parquet, canal-json]}": "dumps.formats: add jsonl: canal-json is made from it",
    "dumps: {url: 'dump-api:8080'}": "dumps.url: must be a URL that begins with http:// or https://, for example "
    "http://host:8080, not 'dump-api:8080'",
    "dumps: {api_keys: [{name: a, sha256: hunter2}]}": "dumps.api_keys.0.sha256: must be the key's SHA-256, as 64 of "
    "0-9 and a-f: printf %s KEY | sha256sum",
    "dumps: {api_keys: [{name: a}]}": "dumps.api_keys.0: set sha256 or key_file, one of them",
    "dumps: {api_keys: [{name: a, key_file: /nowhere}]}": "dumps.api_keys.0: key_file cannot be read: No such file or "
    "directory: /nowhere",
    "dumps: {api_keys: [{name: a, key_file: /dev/null}]}": "dumps.api_keys.0: key_file is empty: /dev/null",
    "dumps: {schedules: [{name: a, every: 1h, cron: 0 3 * * *}]}": "dumps.schedules.0: set every or cron, one of them",
    "dumps: {schedules: [{name: a, every: 1h}, {name: a, every: 2h}]}": "dumps.schedules: two entries have the name a",
    "dumps: {schedules: [{name: a, cron: 0 3}]}": "dumps.schedules.0.cron: must be minute, hour, day, month and day of "
    "the week, for example 0 3 * * *, not '0 3': Wrong number of fields",
    "dumps: {schedules: [{name: a, cron: 0 0 31 2 *}]}": "dumps.schedules.0.cron: must be minute, hour, day, month and "
    "day of the week, for example 0 3 * * *, not '0 0 31 2 *': Bad day-of-month",
    "spark: {lake: 'file://lake'}": "spark.lake: must be a folder as a URL, for example file:///var/lib/databus/lake "
    "or s3a://bucket/lake, not 'file://lake'",
    "spark: {lake: 's3a://AKIA:hunter2@bucket/lake'}": "spark.lake: the URL must not contain a login: set it by "
    "properties in spark.conf",
    "spark: {master: 'mesos://m:5050'}": "spark.master: must be local[N], local[*], spark://HOST:PORT, yarn or "
    "k8s://URL, not 'mesos://m:5050'",
    "spark: {conf: {executor.memory: 4g}}": "spark.conf.executor.memory: must be a property of Spark, for example "
    "spark.executor.memory, not 'executor.memory'",
    "spark: {conf: {spark.hadoop.fs.s3a.secret.key: [hunter2]}}": "spark.conf.spark.hadoop.fs.s3a.secret.key: must be "
    "text, not a list",
    # units and limits
    "reader: {backlog_limit: 256MB}": "reader.backlog_limit: must be bytes, or a size such as 256MiB (B, KiB, MiB or "
    "GiB), not '256MB'",
    "publisher: {transaction_timeout: 6hours}": "publisher.transaction_timeout: must be seconds, or a duration such as "
    "90s (ms, s, m, h or d), not '6hours'",
    "publisher: {transaction_timeout: .inf}": "publisher.transaction_timeout: must be a finite number, not inf",
    "reader: {row_limit: 0}": "reader.row_limit: must be greater than 0, not 0",
    "log: {level: INFO}": "log.level: must be 'debug', 'info', 'warning' or 'error', not 'INFO'",
    # YAML
    "redis: {}\nredis: {url: 'redis://r'}": "not valid YAML at line 3, column 1: the key redis is there twice",
    "source:\n\tuser: a": r"not valid YAML at line 3, column 1: found character '\t' that cannot start any token; "
    "indent with spaces, not with tabs",
}


def fault(path: Path) -> str:
    with pytest.raises(InvalidSettings) as caught:
        load(path)
    (line,) = str(caught.value).splitlines()
    assert "hunter2" not in line
    return line


@pytest.mark.parametrize("text", IN_FILE)
def test_a_mistake_in_the_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "databus.yaml"
    path.write_text(f"name: shop\n{text}\n")
    assert fault(path) == f"{path}: {IN_FILE[text]}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty; it needs at least `name: NAME`"),
        ("# name: shop", "the file is empty; it needs at least `name: NAME`"),
        ("name=shop", "must be a mapping of sections (name, source, redis, kafka, …)"),
        ("source: {}", "name: is missing; this key is required"),
        ("name: Shop!", "name: must be 1 to 63 of A-Z, a-z, 0-9, _ and -, for example shop_1, not 'Shop!'"),
        ("name: 2026-11-23", "name: must be text, not a date; write it in quotes"),
        (None, "No such file or directory (give the file by --config or DATABUS_CONFIG)"),
    ],
)
def test_a_file_without_a_pipeline(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "databus.yaml"
    if text is not None:
        path.write_text(text)
    assert fault(path) == f"{path}: {message}"


JSON = """must be JSON, such as ["A", "B"] for a list, {"KEY": "VALUE"} for a mapping"""
IN_ENVIRONMENT = {
    "SOURCE__HOST=db1:3306": " overrides nothing: there is no source.host; did you mean DATABUS__SOURCE__HOSTS?",
    "SHOP__OWNER=me": " overrides nothing: there is no shop.owner",
    "SOURCE__TLS__CA=x": " overrides nothing: there is no source.tls.ca; did you mean DATABUS__SOURCE__TLS__CA_FILE?",
    "PUBLISHER__ROUTES__TOPIC=t": " overrides nothing: there is no publisher.routes.topic",
    "SOURCE__HOSTS=db1:3306": f" {JSON}",
    "REDIS=redis://:hunter2@r": f" {JSON}",
    'SOURCE__HOSTS=["db1"]': f": source.hosts.0: {HOST_PORT}'db1'",
    "READER__ROW_LIMIT=8MB": ": reader.row_limit: must be bytes, or a size such as 256MiB (B, KiB, MiB or GiB), not "
    "'8MB'",
    "LOG__LEVELS__AIOKAFKA=WARNING": ": log.levels.aiokafka: must be 'debug', 'info', 'warning' or 'error', not "
    "'WARNING'",
    "PUBLISHER__ROUTES=[{}]": ": publisher.routes: rule 1: match: is missing; this key is required",
}


@pytest.mark.parametrize("assignment", IN_ENVIRONMENT)
def test_a_mistake_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, assignment: str) -> None:
    path = tmp_path / "databus.yaml"
    path.write_text("name: shop\nlog: {levels: {aiohttp: debug}}")
    variable, _, value = assignment.partition("=")
    monkeypatch.setenv(f"DATABUS__{variable}", value)
    assert fault(path) == f"environment: DATABUS__{variable}{IN_ENVIRONMENT[assignment]}"


def test_a_variable_with_one_underscore_for_two_would_override_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "databus.yaml"
    path.write_text("name: shop")
    monkeypatch.setenv("DATABUS_READER_SERVICE_HOST", "10.0.0.1")  # set by Kubernetes for a Service databus-reader
    assert load(path).name == "shop"
    monkeypatch.setenv("DATABUS_SOURCE_PASSWORD", "hunter2")
    assert fault(path) == (
        "environment: DATABUS_SOURCE_PASSWORD overrides nothing; did you mean DATABUS__SOURCE__PASSWORD?"
    )


def test_an_error_in_what_file_and_environment_set_together_names_its_origin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "databus.yaml"
    path.write_text("name: shop\nlog: {levels: {aiokafka: loud}}")
    monkeypatch.setenv("DATABUS__LOG__LEVELS", '{"databus": "info"}')
    monkeypatch.setenv("DATABUS__KAFKA__SECURITY_PROTOCOL", "SASL_SSL")
    with pytest.raises(InvalidSettings) as caught:
        load(path)
    kafka, level = str(caught.value).splitlines()
    said = "security_protocol SASL_SSL needs sasl (the environment sets DATABUS__KAFKA__SECURITY_PROTOCOL)"
    assert kafka == f"{path}: kafka: {said}"
    assert level == f"{path}: log.levels.aiokafka: must be 'debug', 'info', 'warning' or 'error', not 'loud'"
