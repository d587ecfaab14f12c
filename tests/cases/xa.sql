-- An XA transaction is published if it commits in one phase. XA PREPARE stops the reader: the outcome comes later.
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

XA END 'b';

XA PREPARE 'b';
-- !! XA PREPARE after captured rows at FILE:OFFSET: the binlog does not show which of these rows take effect; START
--    OVER

XA COMMIT 'b';
