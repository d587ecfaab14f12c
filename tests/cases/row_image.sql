-- Rows that lack columns stop the reader.
-- route: {format: databus}

CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT);
-- -> {"Action": "create", "Query": "CREATE TABLE `shop`.t (id INT PRIMARY KEY, a INT, b INT)"}

INSERT INTO t VALUES (1, 2, 3);
-- -> {"Action": "insert", "Rows": [["1", "2", "3"]]}

SET SESSION binlog_row_image = MINIMAL;

UPDATE t SET a = 4;
-- !! rows of shop.t at FILE:OFFSET lack columns (id, a, b); set binlog_row_image=FULL on the server (and in
--    sessions that set it themselves); START OVER

SET SESSION binlog_row_image = FULL;

UPDATE t SET a = 5;
-- -> {"Action": "update", "Rows": [["1", "4", "3"], ["1", "5", "3"]]}
