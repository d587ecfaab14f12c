"""The Spark session: connectors from local jars, UTC, Delta, a small memory footprint."""

from pathlib import Path

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from databus.errors import InvalidSettings
from databus.kafka_java import SECRETS
from databus.settings import Spark
from databus_spark.layout import Layout

#: prefix of a connector's jar → the system that it connects Spark to
_JARS = {"spark-sql-kafka": "Kafka", "delta-spark": "Delta"}


def jars(folder: Path) -> list[Path]:
    """List the jars in a folder. Raises InvalidSettings if the jar of a connector is missing."""
    found = sorted(folder.glob("*.jar"))
    for prefix, system in _JARS.items():
        if not any(jar.name.startswith(prefix) for jar in found):
            raise InvalidSettings(
                f"spark.jars: {folder} has no {prefix}*.jar, the connector for {system}: "
                "fetch the jars with Maven from the sink's pom.xml"
            )
    return found


def open_session(settings: Spark, layout: Layout) -> SparkSession:
    """Start Spark, or return the session that is open already. Blocks for seconds. Raises InvalidSettings."""
    builder = SparkSession.builder.appName("databus-spark-sink")
    for key, value in _configuration(settings, layout).items():
        builder = builder.config(key, value)
    try:
        spark = builder.getOrCreate()
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise InvalidSettings("Java cannot be started: install a JDK 17 and put java on the PATH") from error
    # Errors in Java are raised in Python, where they become one line. Java's stack traces may contain row data.
    spark.sparkContext.setLogLevel("FATAL")
    return spark


def _configuration(settings: Spark, layout: Layout) -> dict[str, str]:
    configuration = {
        "spark.master": settings.master,
        "spark.driver.memory": "1g",
        # The jars are on the driver's class path, so nothing is downloaded or copied at run time.
        "spark.driver.extraClassPath": ":".join(map(str, jars(settings.jars))),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": f"{layout.root}/_databus/warehouse",
        "spark.sql.session.timeZone": "UTC",
        # Micro-batches are small: 2 partitions are faster than Spark's default of 200.
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "2",
        # MySQL, Spark and Parquet use the same (proleptic Gregorian) calendar before 1582, so dates need no rebasing.
        "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
        # Patterns of the names of settings whose values Spark neither logs nor shows.
        "spark.redaction.regex": SECRETS,
        "spark.sql.redaction.options.regex": SECRETS,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if settings.master.startswith("local"):
        configuration |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return configuration
