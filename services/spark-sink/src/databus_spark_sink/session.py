"""The Spark session: on this machine or on a cluster, with connectors from local jars, in UTC."""

import re
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from databus_core.errors import InvalidSettings, SparkUnavailable
from databus_core.kafka_java import SECRETS
from databus_core.settings import Spark
from databus_spark import formats
from databus_spark.folder import Folder
from databus_spark.layout import Layout

#: the system that a connector connects Spark to, prefix of the connector's jar
_KAFKA = ("Kafka", "spark-sql-kafka")
_FORMATS = {"delta": ("Delta", "delta-spark"), "iceberg": ("Iceberg", "iceberg-spark-runtime")}

#: without these values the sink does not work, writes wrong values, or shows secrets
_REQUIRED = {
    "spark.submit.deployMode": "client",
    "spark.sql.session.timeZone": "UTC",
    # MySQL, Spark and Parquet use the same (proleptic Gregorian) calendar before 1582, so dates need no rebasing.
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    # A text in SQL, such as the default of a column, is what it is, also if it has ${…}.
    "spark.sql.variable.substitute": "false",
    # Patterns of the names of settings whose values Spark neither logs nor shows.
    "spark.redaction.regex": SECRETS,
    "spark.sql.redaction.options.regex": SECRETS,
}
#: Java's own log, from its start on; an option in spark.conf may choose another configuration
_LOGGING = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.xml').as_uri()}"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"

_DEFAULTS = {
    "spark.driver.memory": "1g",
    # A batch of one table has about 100 generated classes. Spark keeps 100, and would compile the others each time.
    "spark.sql.codegen.cache.maxEntries": "2000",
    "spark.databricks.delta.snapshotPartitions": "2",
    # Delta need not keep the rows that it merges: we do, and they would be the same if they were computed again.
    "spark.databricks.delta.merge.materializeSource": "none",
    "spark.databricks.delta.merge.failSourceCachedAfterMaterialization": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_LOCAL_DEFAULTS = {
    # Micro-batches are small: 2 partitions are faster than Spark's default of 200.
    "spark.sql.shuffle.partitions": "2",
    # and would be run as one job for each of a query's stages
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def jars(settings: Spark) -> list[Path]:
    """List the jars in the folder. Raises InvalidSettings if the jar of a connector is missing."""
    found = sorted(settings.jars.glob("*.jar"))
    for system, prefix in (_KAFKA, _FORMATS[settings.table_format]):
        if not any(jar.name.startswith(prefix) for jar in found):
            raise InvalidSettings(
                f"spark.jars: {settings.jars} has no {prefix}*.jar, the connector for {system}: "
                "fetch the jars with Maven from the sink's pom.xml"
            )
    return found


def open_session(settings: Spark, layout: Layout) -> SparkSession:
    """Start Spark, or return the session that is open already, and connect to the lake. Blocks for seconds.

    Raises InvalidSettings, SparkUnavailable or LakeUnavailable.
    """
    properties = configuration(settings, layout)
    public = [(name, value) for name, value in properties.items() if not re.search(SECRETS, name)]
    builder = SparkSession.builder.appName("databus-spark-sink")
    for name, value in properties.items():
        builder = builder.config(name, value)
    try:
        # Everybody on the machine can read Java's command line, so the secrets are not there.
        SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll(public))
        spark = builder.getOrCreate()
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise InvalidSettings(
            "Java cannot be started: install a JDK 17 and put java on the PATH, or correct spark.conf"
        ) from error
    except Py4JError as error:
        raise SparkUnavailable(
            f"no session can be opened on {settings.master} (check spark.master and spark.conf)"
        ) from error
    # Java may have been started by somebody else, for instance as a SparkApplication: with another log.
    spark.sparkContext.setLogLevel("FATAL")
    Folder(spark, layout.root).size("changes")  # shows whether the lake's file system can be reached
    return spark


def configuration(settings: Spark, layout: Layout) -> dict[str, str]:
    """Return Spark's properties. Raises InvalidSettings if `spark.conf` or `spark.jars` is wrong."""
    found = jars(settings)
    defaults = _DEFAULTS | {"spark.sql.warehouse.dir": f"{layout.root}/_databus/warehouse"}
    required = _REQUIRED | formats.configuration(settings.table_format, layout.root)
    required["spark.master"] = settings.master
    if settings.master.startswith("local"):
        defaults |= _LOCAL_DEFAULTS
        # The jars are on the driver's class path, so nothing is downloaded or copied at run time.
        required["spark.driver.extraClassPath"] = ":".join(map(str, found))
    else:
        required["spark.jars"] = ",".join(jar.resolve().as_uri() for jar in found)
    given = {name: value.get_secret_value() for name, value in settings.conf.items()}
    if refused := sorted(given.keys() & required.keys()):
        raise InvalidSettings(f"spark.conf: remove {', '.join(refused)}: the sink sets these properties itself")
    options = {_JAVA_OPTIONS: f"{_LOGGING} {given.get(_JAVA_OPTIONS, '')}".rstrip()}
    return defaults | given | options | required
