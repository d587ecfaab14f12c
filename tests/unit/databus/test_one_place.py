"""Clients of Kafka and Redis are made in one module each, so that security settings apply to all."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[3]


def clients(file: Path) -> set[str]:
    """List the clients of aiokafka and redis-py, and the connectors of Spark, that a module makes."""
    return {
        client for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call) for client in made(node)
    }


def made(call: ast.Call) -> set[str]:
    *owners, called = ast.unparse(call.func).split(".")
    if called.startswith("AIOKafka") or called == "create_conn":
        return {called}
    if called == "format" and any(isinstance(each, ast.Constant) and each.value == "kafka" for each in call.args):
        return {"spark"}
    return {"Redis"} if {*owners, called} & {"Redis", "from_url"} else set()


def test_clients_are_made_in_one_place() -> None:
    makers = {
        str(file.relative_to(ROOT)): names
        for folder in ("libs", "services")
        for file in sorted((ROOT / folder).glob("*/src/**/*.py"))
        if file.relative_to(ROOT).parts[1] != "devstack"  # it starts servers, and knows nothing of configurations
        if (names := clients(file))
    }
    assert makers == {
        "libs/databus/src/databus/kafka_client.py": {"AIOKafkaAdminClient", "AIOKafkaConsumer", "AIOKafkaProducer"},
        "libs/databus/src/databus/kafka_errors.py": {"create_conn"},
        "libs/databus/src/databus/redis_connection.py": {"Redis"},
        "services/spark-sink/src/databus_spark_sink/stream.py": {"spark"},
    }
