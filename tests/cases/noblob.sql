-- With publisher.publish_partial, updates and deletes that lack BLOB and TEXT values are published.
-- publisher: {publish_partial: true}
-- global: binlog_row_image = NOBLOB
-- omit: Query
-- route: {format: databus}
-- route: {format: canal-json}
-- route: {format: debezium-json, options: {schemas_enable: false, include_schema_changes: false}}
-- route: {format: maxwell-json, options: {output_commit_info: false}}

SET SESSION binlog_row_image = NOBLOB;

CREATE TABLE t (id INT PRIMARY KEY, a INT, b TEXT, c BLOB);
-- databus -> {"Action": "create"}
-- canal-json -> {"data": null, "isDdl": true, "old": null, "pkNames": null,
--    "sql": "CREATE TABLE `shop`.t (id INT PRIMARY KEY, a INT, b TEXT, c BLOB)", "table": "t", "type": "CREATE"}

INSERT INTO t VALUES (1, 2, 'text', 'bytes');
-- databus -> {"Action": "insert", "Rows": [["1", "2", "text", "bytes"]]}
-- canal-json -> {"data": [{"id": "1", "a": "2", "b": "text", "c": "bytes"}], "isDdl": false, "old": null,
--    "pkNames": ["id"], "sql": "", "table": "t", "type": "INSERT"}
-- debezium-json -> {"before": null, "after": {"id": 1, "a": 2, "b": "text", "c": "Ynl0ZXM="}, "op": "c"}
-- maxwell-json -> {"table": "t", "type": "insert", "data": {"id": 1, "a": 2, "b": "text", "c": "Ynl0ZXM="}}

UPDATE t SET a = 3;
-- databus -> {"Action": "update", "Rows": [["1", "2", false, false], ["1", "3", false, false]]}
-- canal-json -> {"data": [{"id": "1", "a": "3"}], "isDdl": false, "old": [{"a": "2"}], "pkNames": ["id"], "sql": "",
--    "table": "t", "type": "UPDATE"}
-- debezium-json -> {"before": {"id": 1, "a": 2, "b": "__debezium_unavailable_value",
--    "c": "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="}, "after": {"id": 1, "a": 3, "b": "__debezium_unavailable_value",
--    "c": "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="}, "op": "u"}
-- maxwell-json -> {"table": "t", "type": "update", "data": {"id": 1, "a": 3}, "old": {"a": 2}}

UPDATE t SET b = 'new';
-- databus -> {"Action": "update", "Rows": [["1", "3", false, false], ["1", "3", "new", false]]}
-- canal-json -> {"data": [{"id": "1", "a": "3", "b": "new"}], "isDdl": false, "old": [{}], "pkNames": ["id"],
--    "sql": "", "table": "t", "type": "UPDATE"}
-- debezium-json -> {"before": {"id": 1, "a": 3, "b": "__debezium_unavailable_value",
--    "c": "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="}, "after": {"id": 1, "a": 3, "b": "new",
--    "c": "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="}, "op": "u"}
-- maxwell-json -> {"table": "t", "type": "update", "data": {"id": 1, "a": 3, "b": "new"}}

UPDATE t SET b = NULL, c = 'more', a = 4;
-- databus -> {"Action": "update", "Rows": [["1", "3", false, false], ["1", "4", null, "more"]]}
-- canal-json -> {"data": [{"id": "1", "a": "4", "b": null, "c": "more"}], "isDdl": false, "old": [{"a": "3"}],
--    "pkNames": ["id"], "sql": "", "table": "t", "type": "UPDATE"}
-- debezium-json -> {"before": {"id": 1, "a": 3, "b": "__debezium_unavailable_value",
--    "c": "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="}, "after": {"id": 1, "a": 4, "b": null, "c": "bW9yZQ=="},
--    "op": "u"}
-- maxwell-json -> {"table": "t", "type": "update", "data": {"id": 1, "a": 4, "b": null, "c": "bW9yZQ=="},
--    "old": {"a": 3}}

UPDATE t SET id = 9;
-- databus -> {"Action": "update", "Rows": [["1", "4", false, false], ["9", "4", false, false]]}
-- canal-json -> {"data": [{"id": "9", "a": "4"}], "isDdl": false, "old": [{"id": "1"}], "pkNames": ["id"], "sql": "",
--    "table": "t", "type": "UPDATE"}
-- debezium-json -> {"before": {"id": 1, "a": 4, "b": "__debezium_unavailable_value",
--    "c": "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="}, "after": null, "op": "d"}
-- debezium-json -> null
-- debezium-json -> {"before": null, "after": {"id": 9, "a": 4, "b": "__debezium_unavailable_value",
--    "c": "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="}, "op": "c"}
-- maxwell-json -> {"table": "t", "type": "update", "data": {"id": 9, "a": 4}, "old": {"id": 1}}

DELETE FROM t;
-- databus -> {"Action": "delete", "Rows": [["9", "4", false, false]]}
-- canal-json -> {"data": [{"id": "9", "a": "4"}], "isDdl": false, "old": null, "pkNames": ["id"], "sql": "",
--    "table": "t", "type": "DELETE"}
-- debezium-json -> {"before": {"id": 9, "a": 4, "b": "__debezium_unavailable_value",
--    "c": "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="}, "after": null, "op": "d"}
-- debezium-json -> null
-- maxwell-json -> {"table": "t", "type": "delete", "data": {"id": 9, "a": 4}}
