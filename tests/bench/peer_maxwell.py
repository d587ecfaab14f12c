"""Maxwell, started at the beginning of a binlog file."""

from collections.abc import Iterator
from contextlib import contextmanager

import pymysql
from environment import Environment
from peer_programs import Running, classes, java, libraries, new, write_properties

from devstack import Server


@contextmanager
def maxwell(server: Server, file: str, env: Environment) -> Iterator[Running]:
    """Maxwell, with its own state in schema `maxwell` of the same server."""
    name, topic, folder = new("maxwell", env)
    settings = {
        "host": server.host,
        "port": server.port,
        "user": server.user,
        "password": server.password,
        "jdbc_options": "useSSL=false&serverTimezone=UTC",
        "client_id": name,
        "replica_server_id": 5402,
        "filter": "exclude: *.*, include: bench.t",
        "producer": "kafka",
        "kafka.bootstrap.servers": env.kafka.url,
        "kafka_topic": topic,
    }
    config = write_properties(folder / "config.properties", settings)
    main = ["com.zendesk.maxwell.Maxwell", f"--config={config}", f"--init_position={file}:4:0"]
    classpath = (str(classes(libraries("canal"))), f"{libraries('maxwell')}/*")
    _forget(server)
    try:
        with java(main, topic, folder, *classpath) as running:
            yield running
    finally:
        _forget(server)


def _forget(server: Server) -> None:
    """Remove Maxwell's state, without logging that."""
    with pymysql.connect(host=server.host, port=server.port, user=server.user, password=server.password) as connection:
        connection.query("SET sql_log_bin = 0")
        connection.query("DROP DATABASE IF EXISTS maxwell")
