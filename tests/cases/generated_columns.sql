-- Generated columns are in the binlog, whether they are stored or not.
-- omit: Query
-- route: {format: databus}
-- route: {format: debezium-json, options: {schemas_enable: false, include_schema_changes: false}}

CREATE TABLE t (id INT PRIMARY KEY, price INT, twice INT AS (price * 2) VIRTUAL, thrice INT AS (price * 3) STORED);
-- databus -> {"Action": "create"}

INSERT INTO t (id, price) VALUES (1, 5);
-- databus -> {"Action": "insert", "Rows": [["1", "5", "10", "15"]]}
-- debezium-json -> {"before": null, "after": {"id": 1, "price": 5, "twice": 10, "thrice": 15}, "op": "c"}

UPDATE t SET price = 6;
-- databus -> {"Action": "update", "Rows": [["1", "5", "10", "15"], ["1", "6", "12", "18"]]}
-- debezium-json -> {"before": {"id": 1, "price": 5, "twice": 10, "thrice": 15}, "after": {"id": 1, "price": 6,
--    "twice": 12, "thrice": 18}, "op": "u"}
