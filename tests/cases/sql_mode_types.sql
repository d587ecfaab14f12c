-- The session's sql_mode may turn a type into another one.
-- show: def
-- omit: sql
-- route: {format: maxwell-json, options: {output_ddl: true}}

SET SESSION sql_mode = 'ANSI';

CREATE TABLE t (number REAL);
-- -> {"type": "table-create", "table": "t", "def": {"database": "shop", "charset": "utf8mb4", "table": "t",
--    "columns": [{"type": "float", "name": "number"}], "primary-key": []}}

SET SESSION sql_mode = '';

CREATE TABLE u (number REAL);
-- -> {"type": "table-create", "table": "u", "def": {"database": "shop", "charset": "utf8mb4", "table": "u",
--    "columns": [{"type": "double", "name": "number"}], "primary-key": []}}
