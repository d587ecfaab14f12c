"""The Spark session: local jars, UTC, Delta, small enough for a side-car."""

import logging
from pathlib import Path

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from databus.errors import InvalidSettings
from databus.settings import Spark
from databus_spark_sink.lake import Lake

#: part of a jar's name → what it is for
_JARS = {"spark-sql-kafka": "Kafka", "delta-spark": "Delta"}


def jars(folder: Path) -> list[Path]:
    """List the jars of the connectors. Raises InvalidSettings if one of them is missing."""
    found = sorted(folder.glob("*.jar"))
    for part, purpose in _JARS.items():
        if not any(jar.name.startswith(part) for jar in found):
            raise InvalidSettings(
                f"spark.jars: {folder} holds no {part}*.jar, the connector for {purpose}: "
                "fill it by Maven from the sink's pom.xml"
            )
    return found


def open_session(settings: Spark, place: Lake) -> SparkSession:
    """Start Spark, or join the session there is. Blocks for seconds. Raises InvalidSettings."""
    builder = SparkSession.builder.appName("databus-spark-sink")
    for key, value in _configuration(settings, place).items():
        builder = builder.config(key, value)
    try:
        spark = builder.getOrCreate()
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise InvalidSettings("Java cannot be started: install a JDK 17 and put java on the PATH") from error
    # Whatever fails in Java is raised in Python, where it becomes one line; its stack traces may hold row data.
    spark.sparkContext.setLogLevel("FATAL")
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    return spark


def _configuration(settings: Spark, place: Lake) -> dict[str, str]:
    configuration = {
        "spark.master": settings.master,
        "spark.driver.memory": "1g",
        # The driver's own class path: nothing is fetched at run time, nothing copied.
        "spark.driver.extraClassPath": ":".join(map(str, jars(settings.jars))),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": str(place.root / "_databus" / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        # A micro-batch is small: what Spark would cut into 200 parts is done sooner in 2.
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "2",
        # Dates before 1582 mean the same in MySQL, Spark and Parquet; there is no old calendar to be minded.
        "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if settings.master.startswith("local"):
        configuration |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return configuration
