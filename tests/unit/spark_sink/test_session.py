"""The properties of a Spark session."""

import re
from pathlib import Path

import pytest

from databus_core.errors import InvalidSettings
from databus_core.kafka_java import SECRETS
from databus_core.settings import Spark
from databus_spark.layout import Layout
from databus_spark_sink.session import configuration

LAKE = Layout("s3a://bucket/lake/")


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    for name in ("delta-spark_4.1_2.13-4.4.0.jar", "spark-sql-kafka-0-10_2.13-4.1.3.jar"):
        (tmp_path / name).touch()
    return tmp_path


def test_the_operators_properties_win_over_the_defaults(jars: Path) -> None:
    found = configuration(Spark(jars=jars, conf={"spark.driver.memory": "4g", "spark.executor.cores": 2}), LAKE)
    assert (found["spark.driver.memory"], found["spark.executor.cores"]) == ("4g", "2")
    assert found["spark.sql.shuffle.partitions"] == "2"
    assert found["spark.sql.warehouse.dir"] == "s3a://bucket/lake/_databus/warehouse"


def test_java_does_not_log_and_has_the_operators_options_too(jars: Path) -> None:
    found = configuration(Spark(jars=jars, conf={"spark.driver.extraJavaOptions": "-Xss8m"}), LAKE)
    options = found["spark.driver.extraJavaOptions"].split()
    assert (len(options), options[1]) == (2, "-Xss8m")
    file = Path(options[0].removeprefix("-Dlog4j2.configurationFile=file://"))
    assert "<Null name" in file.read_text()


@pytest.mark.parametrize("master", ["spark://master:7077", "yarn", "k8s://https://kubernetes.default.svc"])
def test_on_a_cluster_executors_get_the_jars_and_the_session_has_the_defaults_of_spark(jars: Path, master: str) -> None:
    found = configuration(Spark(jars=jars, master=master), LAKE)
    assert found["spark.master"] == master
    assert found["spark.jars"].split(",") == [jar.as_uri() for jar in sorted(jars.iterdir())]
    assert not found.keys() & {"spark.driver.extraClassPath", "spark.driver.host", "spark.sql.shuffle.partitions"}


def test_a_property_that_the_sink_needs_is_refused_in_one_line_without_its_value(jars: Path) -> None:
    conf = {"spark.sql.session.timeZone": "hunter2", "spark.master": "yarn", "spark.executor.memory": "4g"}
    with pytest.raises(InvalidSettings) as caught:
        configuration(Spark(jars=jars, conf=conf), LAKE)
    assert str(caught.value) == (
        "spark.conf: remove spark.master, spark.sql.session.timeZone: the sink sets these properties itself"
    )


def test_the_session_has_the_table_format_of_the_lake(jars: Path) -> None:
    with pytest.raises(InvalidSettings, match=r"has no iceberg-spark-runtime\*\.jar, the connector for Iceberg"):
        configuration(Spark(jars=jars, table_format="iceberg"), LAKE)
    (jars / "iceberg-spark-runtime-4.1_2.13-1.12.0.jar").touch()
    found = configuration(Spark(jars=jars, table_format="iceberg"), LAKE)
    assert found["spark.sql.catalog.iceberg.warehouse"] == "s3a://bucket/"
    assert "spark.sql.extensions" not in found
    local = configuration(Spark(jars=jars, table_format="iceberg"), Layout("file:///lake"))
    assert local["spark.sql.catalog.iceberg.warehouse"] == "file:///"


@pytest.mark.parametrize(
    "name",
    [
        "spark.hadoop.fs.s3a.access.key",
        "spark.hadoop.fs.s3a.secret.key",
        "spark.hadoop.fs.s3a.session.token",
        "spark.hadoop.fs.s3a.encryption.key",
        "spark.hadoop.fs.azure.account.key.shop.dfs.core.windows.net",
        "spark.hadoop.fs.azure.account.oauth2.client.secret",
        "spark.hadoop.fs.azure.sas.fixed.token",
        "spark.hadoop.fs.gs.auth.service.account.private.key",
        "spark.ssl.keyPassword",
    ],
)
def test_the_names_of_secrets_are_known(name: str) -> None:
    assert re.search(SECRETS, name)


@pytest.mark.parametrize("name", ["spark.master", "spark.executor.memory", "spark.hadoop.fs.s3a.endpoint"])
def test_other_values_are_shown(name: str) -> None:
    assert not re.search(SECRETS, name)
