"""Messages of the MySQL and MariaDB connectors of Debezium 3.1 to 3.6, as JSON and as Avro.

Most values that the connectors lose or distort are exact in these messages (docs/reference/debezium.md).
"""
