-- CREATE OR REPLACE DATABASE drops the database's tables.
-- servers: mariadb
-- route: {format: databus}
-- route: {format: canal-json}
-- route: {format: maxwell-json, options: {output_ddl: true}}
-- route: {format: debezium-json, options: {schemas_enable: false}}
-- omit: data isDdl pkNames tableChanges.table

CREATE TABLE a (id INT);
-- databus -> {"Action": "create", "Query": "CREATE TABLE `shop`.a (id INT)"}
-- canal-json -> {"old": null, "sql": "CREATE TABLE `shop`.a (id INT)", "table": "a", "type": "CREATE"}
-- maxwell-json -> {"type": "table-create", "table": "a", "sql": "CREATE TABLE `shop`.a (id INT)"}
-- cases -> {"databaseName": "shop", "schemaName": null, "ddl": "CREATE TABLE `shop`.a (id INT)",
--    "tableChanges": [{"type": "CREATE", "id": "\"shop\".\"a\"", "table": {"defaultCharsetName": "utf8mb4",
--    "primaryKeyColumnNames": [], "columns": [{"name": "id", "jdbcType": 4, "nativeType": null, "typeName": "INT",
--    "typeExpression": "INT", "charsetName": null, "length": null, "scale": null, "position": 1, "optional": true,
--    "autoIncremented": false, "generated": false, "comment": null, "defaultValueExpression": null,
--    "enumValues": null}], "comment": null}}]}

CREATE OR REPLACE DATABASE shop CHARACTER SET utf8mb3;
-- databus -> {"Action": "drop", "Query": "CREATE OR REPLACE DATABASE shop CHARACTER SET utf8mb3"}
-- canal-json -> {"old": null, "sql": "CREATE OR REPLACE DATABASE shop CHARACTER SET utf8mb3", "table": "",
--    "type": "QUERY"}
-- maxwell-json -> {"type": "database-drop", "sql": "CREATE OR REPLACE DATABASE shop CHARACTER SET utf8mb3"}
-- maxwell-json -> {"type": "database-create", "charset": "utf8mb3",
--    "sql": "CREATE OR REPLACE DATABASE shop CHARACTER SET utf8mb3"}
-- cases -> {"databaseName": "shop", "schemaName": null, "ddl": "CREATE OR REPLACE DATABASE shop CHARACTER SET
--    utf8mb3", "tableChanges": [{"type": "DROP", "id": "\"shop\".\"a\"", "table": null}]}

CREATE TABLE shop.a (c CHAR(1));
-- databus -> {"Action": "create", "Query": "CREATE TABLE shop.a (c CHAR(1))"}
-- canal-json -> {"old": null, "sql": "CREATE TABLE shop.a (c CHAR(1))", "table": "a", "type": "CREATE"}
-- maxwell-json -> {"type": "table-create", "table": "a", "sql": "CREATE TABLE shop.a (c CHAR(1))"}
-- cases -> {"databaseName": "shop", "schemaName": null, "ddl": "CREATE TABLE shop.a (c CHAR(1))",
--    "tableChanges": [{"type": "CREATE", "id": "\"shop\".\"a\"", "table": {"defaultCharsetName": "utf8mb3",
--    "primaryKeyColumnNames": [], "columns": [{"name": "c", "jdbcType": 1, "nativeType": null, "typeName": "CHAR",
--    "typeExpression": "CHAR", "charsetName": "utf8mb3", "length": 1, "scale": null, "position": 1, "optional": true,
--    "autoIncremented": false, "generated": false, "comment": null, "defaultValueExpression": null,
--    "enumValues": null}], "comment": null}}]}
