-- The same three changes in each format whose messages are JSON.
-- omit: mysqlType Query
-- route: {format: databus}
-- route: {format: databus, options: {compat: strict}, output: strict, topic: strict}
-- route: {format: canal-json}
-- route: {format: debezium-json, options: {schemas_enable: false, include_schema_changes: false}}
-- route: {format: dip}
-- route: {format: maxwell-json}
-- route: {format: tdsql}

CREATE TABLE items (id INT PRIMARY KEY, name VARCHAR(20), price DECIMAL(10,2), at DATETIME);
-- databus -> {"Action": "create"}
-- strict -> {"Action": "create"}
-- canal-json -> {"data": null, "isDdl": true, "old": null, "pkNames": null,
--    "sql": "CREATE TABLE `shop`.items (id INT PRIMARY KEY, name VARCHAR(20), price DECIMAL(10,2), at DATETIME)",
--    "table": "items", "type": "CREATE"}
-- dip -> {"data": null, "isDdl": true, "old": null, "pkNames": null,
--    "sql": "CREATE TABLE `shop`.items (id INT PRIMARY KEY, name VARCHAR(20), price DECIMAL(10,2), at DATETIME)",
--    "sqlType": null, "table": "items", "type": "CREATE"}
-- tdsql -> {"eventtypestr": "gtid", "table": ""}
-- tdsql -> {"eventtypestr": "query", "table": "items", "sql": "CREATE TABLE `shop`.items (id INT PRIMARY KEY,
--    name VARCHAR(20), price DECIMAL(10,2), at DATETIME)"}

INSERT INTO items VALUES (1, 'tea', 1.5, '2021-02-03 04:05:06');
-- databus -> {"Action": "insert", "Rows": [["1", "tea", "1.50", "2021-02-03 04:05:06"]]}
-- strict -> {"Action": "insert", "Rows": [["1", "tea", "1.5000", "2021-02-03 04:05:06"]]}
-- canal-json -> {"data": [{"id": "1", "name": "tea", "price": "1.50", "at": "2021-02-03 04:05:06"}], "isDdl": false,
--    "old": null, "pkNames": ["id"], "sql": "", "table": "items", "type": "INSERT"}
-- debezium-json -> {"before": null, "after": {"id": 1, "name": "tea", "price": "AJY=", "at": 1612325106000}, "op": "c"}
-- dip -> {"EVENT_SERVER_ID": null, "GROUP_ID": null, "NEW_VALUES": {"id": "1", "name": "tea", "price": "1.50",
--    "at": "2021-02-03 04:05:06"}, "OLD_VALUES": null, "TABLE": "items", "TYPE": "I"}
-- tdsql -> {"eventtypestr": "gtid", "table": ""}
-- tdsql -> {"eventtypestr": "insert", "table": "items", "where": [], "field": ["1", "'tea'", "1.50",
--    "'2021-02-03 04:05:06'"]}
-- maxwell-json -> {"table": "items", "type": "insert", "commit": true, "data": {"id": 1, "name": "tea", "price": 1.50,
--    "at": "2021-02-03 04:05:06"}}
-- tdsql -> {"eventtypestr": "xid", "table": "items"}

UPDATE items SET name = NULL, price = 2;
-- databus -> {"Action": "update", "Rows": [["1", "tea", "1.50", "2021-02-03 04:05:06"], ["1", null, "2.00",
--    "2021-02-03 04:05:06"]]}
-- strict -> {"Action": "update", "Rows": [["1", "tea", "1.5000", "2021-02-03 04:05:06"], ["1", null, "2.0000",
--    "2021-02-03 04:05:06"]]}
-- canal-json -> {"data": [{"id": "1", "name": null, "price": "2.00", "at": "2021-02-03 04:05:06"}], "isDdl": false,
--    "old": [{"name": "tea", "price": "1.50"}], "pkNames": ["id"], "sql": "", "table": "items", "type": "UPDATE"}
-- debezium-json -> {"before": {"id": 1, "name": "tea", "price": "AJY=", "at": 1612325106000}, "after": {"id": 1,
--    "name": null, "price": "AMg=", "at": 1612325106000}, "op": "u"}
-- dip -> {"EVENT_SERVER_ID": null, "GROUP_ID": null, "NEW_VALUES": {"id": "1", "name": null, "price": "2.00",
--    "at": "2021-02-03 04:05:06"}, "OLD_VALUES": {"id": "1", "name": "tea", "price": "1.50",
--    "at": "2021-02-03 04:05:06"}, "TABLE": "items", "TYPE": "U"}
-- tdsql -> {"eventtypestr": "gtid", "table": ""}
-- tdsql -> {"eventtypestr": "update", "table": "items", "where": ["1", "'tea'", "1.50", "'2021-02-03 04:05:06'"],
--    "field": ["1", "NULL", "2.00", "'2021-02-03 04:05:06'"]}
-- maxwell-json -> {"table": "items", "type": "update", "commit": true, "data": {"id": 1, "name": null, "price": 2.00,
--    "at": "2021-02-03 04:05:06"}, "old": {"name": "tea", "price": 1.50}}
-- tdsql -> {"eventtypestr": "xid", "table": "items"}

DELETE FROM items;
-- databus -> {"Action": "delete", "Rows": [["1", null, "2.00", "2021-02-03 04:05:06"]]}
-- strict -> {"Action": "delete", "Rows": [["1", null, "2.0000", "2021-02-03 04:05:06"]]}
-- canal-json -> {"data": [{"id": "1", "name": null, "price": "2.00", "at": "2021-02-03 04:05:06"}], "isDdl": false,
--    "old": null, "pkNames": ["id"], "sql": "", "table": "items", "type": "DELETE"}
-- debezium-json -> {"before": {"id": 1, "name": null, "price": "AMg=", "at": 1612325106000}, "after": null, "op": "d"}
-- debezium-json -> null
-- dip -> {"EVENT_SERVER_ID": null, "GROUP_ID": null, "NEW_VALUES": null, "OLD_VALUES": {"id": "1", "name": null,
--    "price": "2.00", "at": "2021-02-03 04:05:06"}, "TABLE": "items", "TYPE": "D"}
-- tdsql -> {"eventtypestr": "gtid", "table": ""}
-- tdsql -> {"eventtypestr": "delete", "table": "items", "where": ["1", "NULL", "2.00", "'2021-02-03 04:05:06'"],
--    "field": []}
-- maxwell-json -> {"table": "items", "type": "delete", "commit": true, "data": {"id": 1, "name": null, "price": 2.00,
--    "at": "2021-02-03 04:05:06"}}
-- tdsql -> {"eventtypestr": "xid", "table": "items"}
