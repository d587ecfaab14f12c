"""What a container of the sink's image runs, shown by programs that print their names and arguments."""

import subprocess
from pathlib import Path

import pytest

ENTRYPOINT = Path(__file__).parents[3] / "services/spark-sink/entrypoint.sh"
EXECUTOR = {
    "SPARK_JAVA_OPT_10": "-Dten=a b",
    "SPARK_JAVA_OPT_2": "-Dtwo=2",
    "SPARK_EXECUTOR_MEMORY": "2g",
    "SPARK_EXECUTOR_CORES": "1",
    "SPARK_EXECUTOR_ID": "7",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.7",
    "SPARK_EXECUTOR_POD_NAME": "exec-7",
    "SPARK_APPLICATION_ID": "app",
    "SPARK_DRIVER_URL": "spark://driver",
    "SPARK_RESOURCE_PROFILE_ID": "0",
}


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    for name in ("java", "spark-submit", "databus-spark-sink"):
        (tmp_path / name).write_text('#!/bin/bash\nprintf \'%s\\n\' "${0##*/}" "$@"\n')
    (tmp_path / "python").write_text("#!/bin/bash\necho /pyspark\n")
    for program in tmp_path.iterdir():
        program.chmod(0o755)
    return tmp_path


def run(programs: Path, *arguments: str, **environment: str) -> list[str]:
    environment["PATH"] = f"{programs}:/usr/bin:/bin"
    done = subprocess.run([ENTRYPOINT, *arguments], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_it_runs_the_sink(programs: Path) -> None:
    assert run(programs, "verify", "shop.*") == ["databus-spark-sink", "verify", "shop.*"]
    assert run(programs) == ["databus-spark-sink"]


def test_it_runs_the_driver_of_a_spark_application(programs: Path) -> None:
    found = run(programs, "driver", "--class", "C", "local:///main.py", SPARK_DRIVER_BIND_ADDRESS="10.0.0.1")
    bind = ["--conf", "spark.driver.bindAddress=10.0.0.1"]
    assert found == ["spark-submit", "--deploy-mode", "client", *bind, "--class", "C", "local:///main.py"]


def test_it_runs_an_executor_with_the_options_in_their_order(programs: Path) -> None:
    found = run(programs, "executor", SPARK_CONF_DIR="/conf", **EXECUTOR)
    assert found[:5] == ["java", "-Dtwo=2", "-Dten=a b", "-Xms2g", "-Xmx2g"]
    assert found[5:7] == ["-cp", "/conf::/pyspark/jars/*"]
    assert found[7:10] == [
        "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
        "--driver-url",
        "spark://driver",
    ]
    assert found[-2:] == ["--podName", "exec-7"]
