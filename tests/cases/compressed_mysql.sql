-- A transaction that MySQL compresses.
-- servers: mysql
-- omit: table
-- route: {format: maxwell-json}

SET SESSION binlog_transaction_compression = ON;

CREATE TABLE t (id INT PRIMARY KEY, name TEXT);

BEGIN;

INSERT INTO t VALUES (1, REPEAT('x', 60)), (2, '');

DELETE FROM t WHERE id = 2;

COMMIT;
-- -> {"type": "insert", "data": {"id": 1, "name": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}}
-- -> {"type": "insert", "data": {"id": 2, "name": ""}}
-- -> {"type": "delete", "commit": true, "data": {"id": 2, "name": ""}}
