"""DDL in `debezium-json`: schema changes, and TRUNCATE as a record of the table."""

import json
from typing import Any

from databus_core.events import Action, Column, Table
from unit.messages.formats.debezium_samples import MARIADB, SOURCE, debezium, schemaless, statement, value


def test_ddl_is_published_to_the_schema_change_topic() -> None:
    enum = Column(name="e", type="enum", raw_type="enum('a','it''s(')", values=("a", "it's("), nullable=True)
    ident = Column(name="id", type="bigint", raw_type="bigint(20) unsigned", unsigned=True, auto_increment=True)
    price = Column(name="price", type="decimal", raw_type="decimal(10,2)")
    table = Table(schema="test", name="t1", columns=(ident, enum, price), primary_key=(0,), charset="utf8mb4")
    (record,) = schemaless().statement(statement(Action.ALTER, b"alter table `test`.`t1` add e enum('a','b(')", table))
    assert (record.topic, record.key) == ("srv1", b'{"databaseName":"test"}')
    message = value(record)
    assert list(message) == ["source", "ts_ms", "databaseName", "schemaName", "ddl", "tableChanges"]
    assert message["source"] == json.loads(SOURCE)
    assert (message["ts_ms"], message["databaseName"], message["schemaName"]) == (1_700_000_000_042, "test", None)
    assert message["ddl"] == "alter table `test`.`t1` add e enum('a','b(')"
    (altered,) = message["tableChanges"]
    assert (altered["type"], altered["id"]) == ("ALTER", '"test"."t1"')
    assert altered["table"]["defaultCharsetName"] == "utf8mb4"
    assert altered["table"]["primaryKeyColumnNames"] == ["id"]
    assert altered["table"]["columns"][0] == {
        "name": "id", "jdbcType": -5, "nativeType": None, "typeName": "BIGINT UNSIGNED",
        "typeExpression": "BIGINT UNSIGNED", "charsetName": None, "length": None, "scale": None, "position": 1,
        "optional": False, "autoIncremented": True, "generated": True, "comment": None,
        "defaultValueExpression": None, "enumValues": None,
    }  # fmt: skip
    columns = [
        (c["typeName"], c["jdbcType"], c["length"], c["scale"], c["enumValues"]) for c in altered["table"]["columns"]
    ]
    assert columns[1:] == [("ENUM", 1, 1, None, ["'a'", "'it''s('"]), ("DECIMAL", 3, 10, 2, None)]


def test_a_schema_change_has_declared_types() -> None:
    flag = Column(name="f", type="tinyint", raw_type="tinyint(1)", declared="BOOL")
    json_ = Column(name="j", type="longtext", raw_type="longtext", charset="utf8mb4", declared="JSON")
    table = Table(schema="test", name="t1", columns=(flag, json_))

    def types(**options: Any) -> list[tuple[Any, ...]]:
        (record,) = schemaless(**options).statement(statement(Action.CREATE, b"create table t1", table))
        columns = value(record)["tableChanges"][0]["table"]["columns"]
        return [(c["typeName"], c["typeExpression"], c["jdbcType"], c["length"], c["charsetName"]) for c in columns]

    json_type = ("JSON", "JSON", 1111, None, None)
    assert types() == [("BOOL", "BOOL", 16, None, None), json_type]
    assert types(boolean="number") == [("TINYINT", "TINYINT", 5, 1, None), json_type]


def test_the_schema_change_of_a_dropped_table_has_no_definition() -> None:
    dropped = Table(schema="test", name="t1", columns=())
    (record,) = schemaless().statement(statement(Action.DROP, b"drop table `test`.`t1`", dropped))
    assert value(record)["tableChanges"] == [{"type": "DROP", "id": '"test"."t1"', "table": None}]
    assert not list(
        schemaless(include_schema_changes=False).statement(statement(Action.DROP, b"drop table t1", dropped))
    )


def test_a_truncate_that_is_not_skipped_is_also_a_record_of_the_table() -> None:
    truncate = statement(Action.TRUNCATE, b"truncate `test`.`t1`")
    (ddl,) = schemaless().statement(truncate)
    assert (ddl.topic, value(ddl)["tableChanges"]) == ("srv1", [])
    truncated, ddl = schemaless(skipped_operations=[]).statement(truncate)
    assert (truncated.topic, truncated.key, value(truncated)["op"]) == (None, None, "t")
    assert (value(truncated)["before"], value(truncated)["after"]) == (None, None)


def test_schema_change_records_have_the_connectors_schemas() -> None:
    (record,) = debezium(MARIADB).statement(statement(Action.CREATE, b"create table t1 (id int)"))
    assert record.key is not None
    assert json.loads(record.key)["schema"] == {
        "type": "struct",
        "fields": [{"type": "string", "optional": False, "field": "databaseName"}],
        "optional": False,
        "name": "io.debezium.connector.mariadb.SchemaChangeKey",
        "version": 1,
    }
    schema = value(record)["schema"]
    assert (schema["name"], schema["version"]) == ("io.debezium.connector.mariadb.SchemaChangeValue", 1)
    changes = schema["fields"][-1]
    assert (changes["field"], changes["items"]["name"]) == ("tableChanges", "io.debezium.connector.schema.Change")
