-- If a non-transactional table is changed after a savepoint, the rows and the ROLLBACK are logged: the reader stops.
-- servers: mariadb
-- omit: Query
-- route: {format: databus}

CREATE TABLE t (id INT PRIMARY KEY);
-- -> {"Action": "create"}

CREATE TABLE m (id INT) ENGINE = MyISAM;
-- -> {"Action": "create"}

BEGIN;

INSERT INTO t VALUES (1);

SAVEPOINT s;

INSERT INTO t VALUES (2);

INSERT INTO m VALUES (1);
-- -> {"Action": "insert", "Rows": [["1"]]}

ROLLBACK TO s;

COMMIT;
-- !! ROLLBACK after captured rows at FILE:OFFSET: the binlog does not show which of these rows take effect; START OVER

INSERT INTO t VALUES (3);
-- -> {"Action": "insert", "Rows": [["3"]]}
