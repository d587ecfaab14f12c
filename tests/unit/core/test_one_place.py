"""Clients of Kafka and Redis are created in few modules, so that security settings apply to all clients."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[3]


def clients(file: Path) -> set[str]:
    """List the clients of aiokafka and redis-py, and the Kafka connectors of Spark, that a module creates."""
    calls = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
    return {client for call in calls for client in created_by(call)}


def created_by(call: ast.Call) -> set[str]:
    *owners, called = ast.unparse(call.func).split(".")
    if called.startswith("AIOKafka") or called == "create_conn":
        return {called}
    if called == "format" and any(isinstance(each, ast.Constant) and each.value == "kafka" for each in call.args):
        return {"spark"}
    return {"Redis"} if {*owners, called} & {"Redis", "from_url"} else set()


def test_clients_are_created_only_in_the_modules_that_apply_the_settings() -> None:
    modules = {
        str(file.relative_to(ROOT)): names
        for folder in ("libs", "services")
        for file in sorted((ROOT / folder).glob("*/src/**/*.py"))
        if file.relative_to(ROOT).parts[1] != "devstack"  # its clients connect to local servers, without settings
        if (names := clients(file))
    }
    assert modules == {
        "libs/core/src/databus_core/kafka_client.py": {"AIOKafkaAdminClient", "AIOKafkaConsumer", "AIOKafkaProducer"},
        "libs/core/src/databus_core/kafka_errors.py": {"create_conn"},
        "libs/core/src/databus_core/redis_connection.py": {"Redis"},
        "libs/spark/src/databus_spark/records.py": {"spark"},
    }
