-- If each table has its own topic, DDL on a database goes to a topic of the database, and DROP also to those of tables.
-- partitions: 2
-- omit: data isDdl pkNames
-- route: {format: canal-json, topic: "cdc.{schema}.{table}"}
-- route: {format: canal-json, output: all, topic: "all", partition_by: single}
-- route: {match: ["shop.hidden*"], output: some, drop: true}
-- route: {match: ["shop.a"], format: maxwell-json, output: some, topic: "some.{table}", options: {output_ddl: true}}
-- route: {match: ["shop.*"], exclude: ["shop.b"], format: maxwell-json, output: ddl, topic: "maxwell.{table}", options: {output_ddl: true, ddl_kafka_topic: ddl}}
-- route: {match: ["*.*"], format: maxwell-json, output: ddl, topic: "maxwell.{table}", options: {output_ddl: true, ddl_kafka_topic: ddl}}
-- route: {match: ["shop.*"], output: none, drop: true}
-- route: {match: ["*.*"], format: canal-json, output: none}
-- route: {match: ["other.*"], format: canal-json, output: others}

CREATE TABLE a (id INT);
-- cdc.shop.a/1 -> {"old": null, "sql": "CREATE TABLE `shop`.a (id INT)", "table": "a", "type": "CREATE"}
-- all/0 -> {"old": null, "sql": "CREATE TABLE `shop`.a (id INT)", "table": "a", "type": "CREATE"}
-- some.a/1 -> {"type": "table-create", "table": "a", "sql": "CREATE TABLE `shop`.a (id INT)"}
-- ddl -> {"type": "table-create", "table": "a", "sql": "CREATE TABLE `shop`.a (id INT)"}

ALTER DATABASE CHARACTER SET latin1;
-- cdc.shop/0 -> {"old": null, "sql": "ALTER DATABASE CHARACTER SET latin1", "table": "", "type": "QUERY"}
-- cdc.shop/1 -> {"old": null, "sql": "ALTER DATABASE CHARACTER SET latin1", "table": "", "type": "QUERY"}
-- all/0 -> {"old": null, "sql": "ALTER DATABASE CHARACTER SET latin1", "table": "", "type": "QUERY"}
-- some/0 -> {"type": "database-alter", "charset": "latin1", "sql": "ALTER DATABASE CHARACTER SET latin1"}
-- some/1 -> {"type": "database-alter", "charset": "latin1", "sql": "ALTER DATABASE CHARACTER SET latin1"}
-- ddl -> {"type": "database-alter", "charset": "latin1", "sql": "ALTER DATABASE CHARACTER SET latin1"}

DROP DATABASE shop;
-- cdc.shop.a/0 -> {"old": null, "sql": "DROP DATABASE shop", "table": "", "type": "QUERY"}
-- cdc.shop.a/1 -> {"old": null, "sql": "DROP DATABASE shop", "table": "", "type": "QUERY"}
-- all/0 -> {"old": null, "sql": "DROP DATABASE shop", "table": "", "type": "QUERY"}
-- some.a/0 -> {"type": "database-drop", "sql": "DROP DATABASE shop"}
-- some.a/1 -> {"type": "database-drop", "sql": "DROP DATABASE shop"}
-- ddl -> {"type": "database-drop", "sql": "DROP DATABASE shop"}
-- cdc.shop/0 -> {"old": null, "sql": "DROP DATABASE shop", "table": "", "type": "QUERY"}
-- cdc.shop/1 -> {"old": null, "sql": "DROP DATABASE shop", "table": "", "type": "QUERY"}
-- some/0 -> {"type": "database-drop", "sql": "DROP DATABASE shop"}
-- some/1 -> {"type": "database-drop", "sql": "DROP DATABASE shop"}

CREATE DATABASE shop;
-- cdc.shop/0 -> {"old": null, "sql": "CREATE DATABASE shop", "table": "", "type": "QUERY"}
-- cdc.shop/1 -> {"old": null, "sql": "CREATE DATABASE shop", "table": "", "type": "QUERY"}
-- all/0 -> {"old": null, "sql": "CREATE DATABASE shop", "table": "", "type": "QUERY"}
-- some/0 -> {"type": "database-create", "charset": "utf8mb4", "sql": "CREATE DATABASE shop"}
-- some/1 -> {"type": "database-create", "charset": "utf8mb4", "sql": "CREATE DATABASE shop"}
-- ddl -> {"type": "database-create", "charset": "utf8mb4", "sql": "CREATE DATABASE shop"}
