"""Messages of Debezium's connectors for MySQL and MariaDB, versions 3.1 to 3.6, as JSON and as Avro.

Most values that the connectors lose or distort are exact in these messages (docs/reference/debezium.md).
"""
