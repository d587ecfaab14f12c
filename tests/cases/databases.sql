-- DDL on a database has one message in each topic; format databus has a drop of each of the database's tables.
-- show: database db
-- omit: data isDdl mysqlType pkNames sqlType schemaName
-- route: {format: databus}
-- route: {format: canal-json}
-- route: {format: dip}
-- route: {format: tdsql}
-- route: {format: maxwell-json, options: {output_ddl: true}}
-- route: {format: debezium-json, options: {schemas_enable: false}}

CREATE DATABASE elsewhere;

ALTER DATABASE shop CHARACTER SET latin1;
-- canal-json -> {"database": "shop", "old": null, "sql": "ALTER DATABASE shop CHARACTER SET latin1", "table": "",
--    "type": "QUERY"}
-- dip -> {"database": "shop", "old": null, "sql": "ALTER DATABASE shop CHARACTER SET latin1", "table": "",
--    "type": "QUERY"}
-- tdsql -> {"eventtypestr": "gtid", "db": "", "table": ""}
-- tdsql -> {"eventtypestr": "query", "db": "shop", "table": "", "sql": "ALTER DATABASE shop CHARACTER SET latin1"}
-- maxwell-json -> {"type": "database-alter", "database": "shop", "charset": "latin1",
--    "sql": "ALTER DATABASE shop CHARACTER SET latin1"}
-- cases -> {"databaseName": "shop", "ddl": "ALTER DATABASE shop CHARACTER SET latin1", "tableChanges": []}

CREATE TABLE a (at DATE);
-- databus -> {"Action": "create", "Query": "CREATE TABLE `shop`.a (at DATE)"}
-- canal-json -> {"database": "shop", "old": null, "sql": "CREATE TABLE `shop`.a (at DATE)", "table": "a",
--    "type": "CREATE"}
-- dip -> {"database": "shop", "old": null, "sql": "CREATE TABLE `shop`.a (at DATE)", "table": "a", "type": "CREATE"}
-- tdsql -> {"eventtypestr": "gtid", "db": "", "table": ""}
-- tdsql -> {"eventtypestr": "query", "db": "shop", "table": "a", "sql": "CREATE TABLE `shop`.a (at DATE)"}
-- maxwell-json -> {"type": "table-create", "database": "shop", "table": "a", "sql": "CREATE TABLE `shop`.a (at DATE)"}
-- cases -> {"databaseName": "shop", "ddl": "CREATE TABLE `shop`.a (at DATE)", "tableChanges": [{"type": "CREATE",
--    "id": "\"shop\".\"a\"", "table": {"defaultCharsetName": "latin1", "primaryKeyColumnNames": [],
--    "columns": [{"name": "at", "jdbcType": 91, "nativeType": null, "typeName": "DATE", "typeExpression": "DATE",
--    "charsetName": null, "length": null, "scale": null, "position": 1, "optional": true, "autoIncremented": false,
--    "generated": false, "comment": null, "defaultValueExpression": null, "enumValues": null}], "comment": null}}]}

DROP DATABASE shop;
-- databus -> {"Action": "drop", "Query": "DROP DATABASE shop"}
-- canal-json -> {"database": "shop", "old": null, "sql": "DROP DATABASE shop", "table": "", "type": "QUERY"}
-- dip -> {"database": "shop", "old": null, "sql": "DROP DATABASE shop", "table": "", "type": "QUERY"}
-- tdsql -> {"eventtypestr": "gtid", "db": "", "table": ""}
-- tdsql -> {"eventtypestr": "query", "db": "shop", "table": "", "sql": "DROP DATABASE shop"}
-- maxwell-json -> {"type": "database-drop", "database": "shop", "sql": "DROP DATABASE shop"}
-- cases -> {"databaseName": "shop", "ddl": "DROP DATABASE shop", "tableChanges": [{"type": "DROP",
--    "id": "\"shop\".\"a\"", "table": null}]}

CREATE SCHEMA IF NOT EXISTS `shop` DEFAULT CHARACTER SET utf8mb4;
-- canal-json -> {"database": "shop", "old": null, "sql": "CREATE SCHEMA IF NOT EXISTS `shop` DEFAULT CHARACTER SET
--    utf8mb4", "table": "", "type": "QUERY"}
-- dip -> {"database": "shop", "old": null, "sql": "CREATE SCHEMA IF NOT EXISTS `shop` DEFAULT CHARACTER SET utf8mb4",
--    "table": "", "type": "QUERY"}
-- tdsql -> {"eventtypestr": "gtid", "db": "", "table": ""}
-- tdsql -> {"eventtypestr": "query", "db": "shop", "table": "",
--    "sql": "CREATE SCHEMA IF NOT EXISTS `shop` DEFAULT CHARACTER SET utf8mb4"}
-- maxwell-json -> {"type": "database-create", "database": "shop", "charset": "utf8mb4",
--    "sql": "CREATE SCHEMA IF NOT EXISTS `shop` DEFAULT CHARACTER SET utf8mb4"}
-- cases -> {"databaseName": "shop", "ddl": "CREATE SCHEMA IF NOT EXISTS `shop` DEFAULT CHARACTER SET utf8mb4",
--    "tableChanges": []}

DROP DATABASE elsewhere;
