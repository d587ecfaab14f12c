-- Rows that are rolled back to a savepoint are not logged.
-- omit: Query
-- route: {format: databus}

CREATE TABLE t (id INT PRIMARY KEY);
-- -> {"Action": "create"}

BEGIN;

INSERT INTO t VALUES (1);

SAVEPOINT s;

INSERT INTO t VALUES (2);

ROLLBACK TO s;

INSERT INTO t VALUES (3);

COMMIT;
-- -> {"Action": "insert", "Rows": [["1"]]}
-- -> {"Action": "insert", "Rows": [["3"]]}
