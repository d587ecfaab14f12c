-- Formats with messages for the begin and the end of a transaction: Debezium's END has the counts of its events.
-- route: {format: debezium-json, options: {schemas_enable: false, include_schema_changes: false, provide_transaction_metadata: true}}
-- route: {format: tdsql}
-- omit: id before after

CREATE TABLE a (id INT PRIMARY KEY);
-- tdsql -> {"eventtypestr": "gtid", "table": ""}
-- tdsql -> {"eventtypestr": "query", "table": "a", "sql": "CREATE TABLE `shop`.a (id INT PRIMARY KEY)"}

CREATE TABLE b (id INT PRIMARY KEY);
-- tdsql -> {"eventtypestr": "gtid", "table": ""}
-- tdsql -> {"eventtypestr": "query", "table": "b", "sql": "CREATE TABLE `shop`.b (id INT PRIMARY KEY)"}

BEGIN;

INSERT INTO a VALUES (1), (2);

DELETE FROM a WHERE id = 2;

INSERT INTO b VALUES (1);

COMMIT;
-- cases.transaction -> {"status": "BEGIN", "event_count": null, "data_collections": null}
-- debezium-json -> {"op": "c"}
-- debezium-json -> {"op": "c"}
-- tdsql -> {"eventtypestr": "gtid", "table": ""}
-- tdsql -> {"eventtypestr": "insert", "table": "a", "where": [], "field": ["1"]}
-- tdsql -> {"eventtypestr": "insert", "table": "a", "where": [], "field": ["2"]}
-- debezium-json -> {"op": "d"}
-- debezium-json -> null
-- tdsql -> {"eventtypestr": "delete", "table": "a", "where": ["2"], "field": []}
-- debezium-json -> {"op": "c"}
-- tdsql -> {"eventtypestr": "insert", "table": "b", "where": [], "field": ["1"]}
-- cases.transaction -> {"status": "END", "event_count": 4, "data_collections": [{"data_collection": "shop.a",
--    "event_count": 3}, {"data_collection": "shop.b", "event_count": 1}]}
-- tdsql -> {"eventtypestr": "xid", "table": "b"}
