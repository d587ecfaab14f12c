"""Messages of Debezium's connectors for MySQL and MariaDB, versions 3.1 to 3.6, as JSON and as Avro.

Where the connectors lose or distort values, these messages are exact (docs/reference/debezium.md).
"""
