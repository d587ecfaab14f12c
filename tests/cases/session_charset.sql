-- A schema that is created without a character set gets that of the session.
-- show: def
-- omit: sql
-- route: {format: maxwell-json, options: {output_ddl: true}}

DROP DATABASE shop;
-- -> {"type": "database-drop"}

SET SESSION character_set_server = utf8mb3;

CREATE DATABASE shop;
-- -> {"type": "database-create", "charset": "utf8mb3"}

CREATE TABLE shop.t (name CHAR(1));
-- -> {"type": "table-create", "table": "t", "def": {"database": "shop", "charset": "utf8mb3", "table": "t",
--    "columns": [{"type": "char", "name": "name", "charset": "utf8mb3"}], "primary-key": []}}

ALTER DATABASE shop CHARACTER SET latin1;
-- -> {"type": "database-alter", "charset": "latin1"}

CREATE TABLE shop.u (name CHAR(1));
-- -> {"type": "table-create", "table": "u", "def": {"database": "shop", "charset": "latin1", "table": "u",
--    "columns": [{"type": "char", "name": "name", "charset": "latin1"}], "primary-key": []}}
