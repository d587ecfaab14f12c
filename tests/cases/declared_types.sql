-- Debezium: columns declared as BOOL are booleans, while the declaration is known.
-- omit: schemaName ddl tableChanges
-- route: {format: debezium-json, options: {schemas_enable: false}}
-- route: {format: debezium-json, output: n, topic: n, options: {boolean: number, include_schema_changes: false}}
-- omit: payload.source payload.ts_ms payload.ts_us payload.ts_ns payload.transaction payload.before before

CREATE TABLE t (a BOOL, b BOOLEAN NOT NULL, c TINYINT(1), j JSON);
-- cases -> {"databaseName": "shop"}

INSERT INTO t VALUES (NULL, 5, 5, '{}'), (FALSE, TRUE, TRUE, '[]');
-- debezium-json -> {"after": {"a": null, "b": true, "c": 5, "j": "{}"}, "op": "c"}
-- debezium-json -> {"after": {"a": false, "b": true, "c": 1, "j": "[]"}, "op": "c"}
-- n -> {"payload": {"after": {"a": null, "b": 5, "c": 5, "j": "{}"}, "op": "c"}}
-- n -> {"payload": {"after": {"a": 0, "b": 1, "c": 1, "j": "[]"}, "op": "c"}}

ALTER TABLE t ADD d INT FIRST, RENAME COLUMN b TO e, MODIFY a TINYINT(1), MODIFY c BOOL AFTER a;
-- cases -> {"databaseName": "shop"}

INSERT INTO t VALUES (7, 0, 1, 0, NULL);
-- debezium-json -> {"after": {"d": 7, "a": 0, "c": true, "e": false, "j": null}, "op": "c"}
-- n -> {"payload": {"after": {"d": 7, "a": 0, "c": 1, "e": 0, "j": null}, "op": "c"}}
