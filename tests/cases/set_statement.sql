-- MariaDB sets variables for one statement: what follows FOR is the statement, and is published without its prefix.
-- servers: mariadb
-- route: {format: databus}

CREATE TABLE t (id INT PRIMARY KEY);
-- -> {"Action": "create", "Query": "CREATE TABLE `shop`.t (id INT PRIMARY KEY)"}

SET STATEMENT max_statement_time = 1, sql_mode = CONCAT(@@sql_mode, ',ANSI') FOR ALTER TABLE t ADD c INT;
-- -> {"Action": "alter", "Query": "ALTER TABLE `shop`.t ADD c INT"}

INSERT INTO t VALUES (1, 2);
-- -> {"Action": "insert", "Rows": [["1", "2"]]}

set statement lock_wait_timeout = 5 for set statement max_statement_time = 1 for rename table t to u;
-- -> {"Action": "alter", "Query": "rename table `shop`.t to u"}
-- -> {"Action": "alter", "Query": "rename table t to `shop`.u"}

SET STATEMENT character_set_server = latin1 FOR CREATE OR REPLACE DATABASE shop;
-- -> {"Action": "drop", "Query": "CREATE OR REPLACE DATABASE shop"}

CREATE TABLE shop.t (name CHAR(1));
-- -> {"Action": "create", "Query": "CREATE TABLE shop.t (name CHAR(1))"}

SET STATEMENT max_statement_time = 1 FOR ANALYZE TABLE shop.t;

SET STATEMENT binlog_format = STATEMENT FOR INSERT INTO shop.t VALUES ('a');
-- !! a statement at FILE:OFFSET may have changed tables of shop without logging the rows; set binlog_format=ROW for
--    all sessions; START OVER
