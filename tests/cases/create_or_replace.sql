-- MariaDB's CREATE OR REPLACE drops what exists before it creates: consumers have to lose the old rows.
-- servers: mariadb
-- omit: payload.source payload.ts_ms payload.tableChanges
-- route: {format: databus}
-- route: {format: canal-json, match: [shop.shelf]}
-- route: {format: maxwell-json, match: [shop.shelf], options: {output_ddl: true}}
-- route: {format: debezium-json, match: [shop.shelf]}

CREATE OR REPLACE TABLE t (id INT PRIMARY KEY);
-- databus -> {"Action": "create", "Query": "CREATE OR REPLACE TABLE `shop`.t (id INT PRIMARY KEY)"}

INSERT INTO t VALUES (1);
-- databus -> {"Action": "insert", "Rows": [["1"]]}

CREATE OR REPLACE TABLE t (id INT PRIMARY KEY, name VARCHAR(10));
-- databus -> {"Action": "drop", "Query": "DROP TABLE `shop`.`t` /* CREATE OR REPLACE */"}
-- databus -> {"Action": "create", "Query": "CREATE OR REPLACE TABLE `shop`.t (id INT PRIMARY KEY, name VARCHAR(10))"}

INSERT INTO t VALUES (1, 'tea');
-- databus -> {"Action": "insert", "Rows": [["1", "tea"]]}

CREATE TABLE shelf (id INT);
-- databus -> {"Action": "create", "Query": "CREATE TABLE `shop`.shelf (id INT)"}
-- canal-json -> {"data": null, "isDdl": true, "old": null, "pkNames": null,
--    "sql": "CREATE TABLE `shop`.shelf (id INT)", "table": "shelf", "type": "CREATE"}
-- maxwell-json -> {"type": "table-create", "table": "shelf", "sql": "CREATE TABLE `shop`.shelf (id INT)"}
-- cases -> {"payload": {"databaseName": "shop", "schemaName": null, "ddl": "CREATE TABLE `shop`.shelf (id INT)"}}

CREATE OR REPLACE TABLE shelf LIKE t;
-- databus -> {"Action": "drop", "Query": "DROP TABLE `shop`.`shelf` /* CREATE OR REPLACE */"}
-- canal-json -> {"data": null, "isDdl": true, "old": null, "pkNames": null,
--    "sql": "DROP TABLE `shop`.`shelf` /* CREATE OR REPLACE */", "table": "shelf", "type": "ERASE"}
-- maxwell-json -> {"type": "table-drop", "table": "shelf", "sql": "DROP TABLE `shop`.`shelf` /* CREATE OR REPLACE */"}
-- cases -> {"payload": {"databaseName": "shop", "schemaName": null,
--    "ddl": "DROP TABLE `shop`.`shelf` /* CREATE OR REPLACE */"}}
-- databus -> {"Action": "create", "Query": "CREATE OR REPLACE TABLE `shop`.shelf LIKE t"}
-- canal-json -> {"data": null, "isDdl": true, "old": null, "pkNames": null,
--    "sql": "CREATE OR REPLACE TABLE `shop`.shelf LIKE t", "table": "shelf", "type": "CREATE"}
-- maxwell-json -> {"type": "table-create", "table": "shelf", "sql": "CREATE OR REPLACE TABLE `shop`.shelf LIKE t"}
-- cases -> {"payload": {"databaseName": "shop", "schemaName": null,
--    "ddl": "CREATE OR REPLACE TABLE `shop`.shelf LIKE t"}}

CREATE TEMPORARY TABLE t (id INT);

CREATE OR REPLACE TEMPORARY TABLE t (id INT);

CREATE OR REPLACE TABLE t SELECT 7 AS seven;
-- databus -> {"Action": "drop", "Query": "DROP TABLE `shop`.`t` /* CREATE OR REPLACE */"}
-- databus -> {"Action": "create", "Query": "CREATE OR REPLACE TABLE `shop`.`t` (\n  `seven` int(1) NOT NULL\n)"}
-- databus -> {"Action": "insert", "Rows": [["7"]]}

DROP TEMPORARY TABLE t;

BEGIN NOT ATOMIC DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN END; CREATE OR REPLACE TABLE t (a INT, a INT); END;
-- databus -> {"Action": "drop", "Query": "DROP TABLE `shop`.`t` /* CREATE OR REPLACE */"}

CREATE TABLE u (id INT);
-- databus -> {"Action": "create", "Query": "CREATE TABLE `shop`.u (id INT)"}

BEGIN NOT ATOMIC DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN END; CREATE OR REPLACE TABLE u (UNIQUE (a)) SELECT 1 a UNION ALL SELECT 1; END;
-- databus -> {"Action": "drop", "Query": "DROP TABLE IF EXISTS `shop`.`u`/* Generated to handle failed CREATE OR
--    REPLACE */"}

CREATE TABLE u (id INT);
-- databus -> {"Action": "create", "Query": "CREATE TABLE `shop`.u (id INT)"}

CREATE OR REPLACE DATABASE shop CHARACTER SET latin1;
-- databus -> {"Action": "drop", "Query": "CREATE OR REPLACE DATABASE shop CHARACTER SET latin1"}
-- databus -> {"Action": "drop", "Query": "CREATE OR REPLACE DATABASE shop CHARACTER SET latin1"}
-- canal-json -> {"data": null, "isDdl": true, "old": null, "pkNames": null,
--    "sql": "CREATE OR REPLACE DATABASE shop CHARACTER SET latin1", "table": "", "type": "QUERY"}
-- maxwell-json -> {"type": "database-drop", "sql": "CREATE OR REPLACE DATABASE shop CHARACTER SET latin1"}
-- maxwell-json -> {"type": "database-create", "charset": "latin1",
--    "sql": "CREATE OR REPLACE DATABASE shop CHARACTER SET latin1"}
-- cases -> {"payload": {"databaseName": "shop", "schemaName": null,
--    "ddl": "CREATE OR REPLACE DATABASE shop CHARACTER SET latin1"}}

USE shop;

CREATE OR REPLACE TABLE u (name CHAR(3));
-- databus -> {"Action": "create", "Query": "CREATE OR REPLACE TABLE `shop`.u (name CHAR(3))"}

INSERT INTO u VALUES ('ü');
-- databus -> {"Action": "insert", "Rows": [["ü"]]}

SET SESSION binlog_format = STATEMENT;

CREATE OR REPLACE TEMPORARY TABLE u (id INT);

CREATE OR REPLACE TABLE u (id INT);
-- databus -> {"Action": "drop", "Query": "DROP TABLE `shop`.`u` /* CREATE OR REPLACE */"}
-- databus -> {"Action": "create", "Query": "CREATE OR REPLACE TABLE `shop`.u (id INT)"}
