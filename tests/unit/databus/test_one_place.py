"""Kafka's clients are made in one module, or settings of security would have to be repeated."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[3]


def clients(file: Path) -> set[str]:
    """List the clients of aiokafka, and the connectors of Spark, that a module makes."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            arguments = {argument.value for argument in node.args if isinstance(argument, ast.Constant)}
            if called.startswith("AIOKafka") or called == "create_conn":
                names.add(called)
            if called == "format" and "kafka" in arguments:
                names.add("spark")
    return names


def test_clients_of_kafka_are_made_in_one_place() -> None:
    makers = {
        str(file.relative_to(ROOT)): names
        for folder in ("libs", "services")
        for file in sorted((ROOT / folder).glob("*/src/**/*.py"))
        if file.relative_to(ROOT).parts[1] != "devstack"  # it starts brokers, and knows nothing of configurations
        if (names := clients(file))
    }
    assert makers == {
        "libs/databus/src/databus/kafka_client.py": {"AIOKafkaAdminClient", "AIOKafkaConsumer", "AIOKafkaProducer"},
        "libs/databus/src/databus/kafka_errors.py": {"create_conn"},
        "services/spark-sink/src/databus_spark_sink/stream.py": {"spark"},
    }
