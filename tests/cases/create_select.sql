-- CREATE TABLE … SELECT: a definition, and the rows in the same transaction.
-- omit: sql
-- route: {format: maxwell-json, options: {output_ddl: true}}

CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(10));
-- -> {"type": "table-create", "table": "t"}

INSERT INTO t VALUES (1, 'tea'), (2, NULL);
-- -> {"table": "t", "type": "insert", "data": {"id": 1, "name": "tea"}}
-- -> {"table": "t", "type": "insert", "commit": true, "data": {"id": 2, "name": null}}

CREATE TABLE copy (PRIMARY KEY (id)) SELECT id, UPPER(name) AS loud FROM t;
-- -> {"type": "table-create", "table": "copy"}
-- -> {"table": "copy", "type": "insert", "data": {"id": 1, "loud": "TEA"}}
-- -> {"table": "copy", "type": "insert", "commit": true, "data": {"id": 2, "loud": null}}
