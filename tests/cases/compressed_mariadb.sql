-- Events and columns that MariaDB compresses.
-- servers: mariadb
-- global: log_bin_compress=1
-- global: log_bin_compress_min_len=10
-- route: {format: maxwell-json, options: {output_ddl: true}}
-- omit: sql table

CREATE TABLE t (id INT PRIMARY KEY, packed TEXT COMPRESSED);
-- -> {"type": "table-create"}

INSERT INTO t VALUES (1, REPEAT('x', 60)), (2, '');
-- -> {"type": "insert", "data": {"id": 1, "packed": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}}
-- -> {"type": "insert", "commit": true, "data": {"id": 2, "packed": ""}}

UPDATE t SET packed = 'short' WHERE id = 1;
-- -> {"type": "update", "commit": true, "data": {"id": 1, "packed": "short"},
--    "old": {"packed": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}}

DELETE FROM t;
-- -> {"type": "delete", "data": {"id": 1, "packed": "short"}}
-- -> {"type": "delete", "commit": true, "data": {"id": 2, "packed": ""}}
