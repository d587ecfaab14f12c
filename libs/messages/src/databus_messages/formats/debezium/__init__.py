"""Debezium's messages as the connectors for MySQL and MariaDB write them (3.1 to 3.6), as JSON and as Avro.

Where the connectors' values are wrong these are exact (docs/reference/debezium.md).
"""
