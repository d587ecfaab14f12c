-- DML that is logged as a statement stops the reader: the changed rows are not known.
-- route: {format: databus}

CREATE TABLE t (id INT PRIMARY KEY);
-- -> {"Action": "create", "Query": "CREATE TABLE `shop`.t (id INT PRIMARY KEY)"}

SET SESSION binlog_format = STATEMENT;

INSERT INTO t VALUES (1);
-- !! a statement at FILE:OFFSET may have changed tables of shop without logging the rows; set binlog_format=ROW for all
--    sessions; START OVER

INSERT INTO t SELECT id + 1 FROM t;
-- !! a statement at FILE:OFFSET may have changed tables of shop without logging the rows; set binlog_format=ROW for all
--    sessions; START OVER

CREATE TABLE other (id INT);
-- -> {"Action": "create", "Query": "CREATE TABLE `shop`.other (id INT)"}

SET SESSION binlog_format = ROW;

INSERT INTO t VALUES (3);
-- -> {"Action": "insert", "Rows": [["3"]]}
