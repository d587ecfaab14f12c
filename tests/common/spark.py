"""What tests with Spark share: properties with which it is fast with few rows, and a mark."""

import pytest

#: when a thread ends, py4j leaves its connection open; the garbage collector closes it, which pytest reports
leaves_sockets = pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"
)

#: Queries are interpreted. The demo runs Spark's default, generated code.
FEW_ROWS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}
