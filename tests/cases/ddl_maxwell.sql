-- Maxwell's messages of DDL: the definition before and after.
-- show: def
-- omit: sql
-- route: {format: maxwell-json, options: {output_ddl: true}}

CREATE TABLE t (id INT UNSIGNED PRIMARY KEY, name VARCHAR(10));
-- -> {"type": "table-create", "table": "t", "def": {"database": "shop", "charset": "utf8mb4", "table": "t",
--    "columns": [{"type": "int", "name": "id", "signed": false}, {"type": "varchar", "name": "name",
--    "charset": "utf8mb4"}], "primary-key": ["id"]}}

ALTER TABLE t DROP name, ADD at DATETIME(3);
-- -> {"type": "table-alter", "table": "t", "old": {"database": "shop", "charset": "utf8mb4", "table": "t",
--    "columns": [{"type": "int", "name": "id", "signed": false}, {"type": "varchar", "name": "name",
--    "charset": "utf8mb4"}], "primary-key": ["id"]}, "def": {"database": "shop", "charset": "utf8mb4", "table": "t",
--    "columns": [{"type": "int", "name": "id", "signed": false}, {"type": "datetime", "name": "at",
--    "column-length": 3}], "primary-key": ["id"]}}

RENAME TABLE t TO shelf;
-- -> {"type": "table-alter", "table": "t", "old": {"database": "shop", "charset": "utf8mb4", "table": "t",
--    "columns": [{"type": "int", "name": "id", "signed": false}, {"type": "datetime", "name": "at",
--    "column-length": 3}], "primary-key": ["id"]}, "def": {"database": "shop", "charset": "utf8mb4", "table": "t",
--    "columns": [{"type": "int", "name": "id", "signed": false}, {"type": "datetime", "name": "at",
--    "column-length": 3}], "primary-key": ["id"]}}
-- -> {"type": "table-alter", "table": "shelf", "def": {"database": "shop", "charset": "utf8mb4", "table": "shelf",
--    "columns": [{"type": "int", "name": "id", "signed": false}, {"type": "datetime", "name": "at",
--    "column-length": 3}], "primary-key": ["id"]}}

TRUNCATE shelf;

DROP TABLE shelf;
-- -> {"type": "table-drop", "table": "shelf"}
