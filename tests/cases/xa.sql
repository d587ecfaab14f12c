-- The rows of an XA transaction are published when it is committed, and never if it is rolled back.
-- route: {format: databus}

CREATE TABLE t (id INT PRIMARY KEY);
-- -> {"Action": "create", "Query": "CREATE TABLE `shop`.t (id INT PRIMARY KEY)"}

XA START 'a';

INSERT INTO t VALUES (1);

XA END 'a';

XA COMMIT 'a' ONE PHASE;
-- -> {"Action": "insert", "Rows": [["1"]]}

XA START 'b';

INSERT INTO t VALUES (2);

UPDATE t SET id = 3 WHERE id = 2;

XA END 'b';

XA PREPARE 'b';

XA COMMIT 'b';
-- -> {"Action": "insert", "Rows": [["2"]]}
-- -> {"Action": "update", "Rows": [["2"], ["3"]]}

XA START 'c';

INSERT INTO t VALUES (4);

XA END 'c';

XA PREPARE 'c';

XA ROLLBACK 'c';
