-- What publisher.publish_partial does not permit: that columns of other types are missing, and MariaDB's virtual columns,
-- whose changes it does not log.
-- publisher: {publish_partial: true}
-- omit: Query
-- route: {format: databus}

CREATE TABLE t (id INT PRIMARY KEY, a INT, b TEXT, v TEXT AS (CONCAT(a, '!')) VIRTUAL);
-- -> {"Action": "create"}

INSERT INTO t (id, a, b) VALUES (1, 2, 'x');
-- -> {"Action": "insert", "Rows": [["1", "2", "x", "2!"]]}

SET SESSION binlog_row_image = MINIMAL;

UPDATE t SET a = 3;
-- !! rows of shop.t at FILE:OFFSET lack columns (id, a, b, v); set binlog_row_image=FULL on the server (and in
--    sessions that set it themselves); START OVER

SET SESSION binlog_row_image = NOBLOB;

UPDATE t SET a = 4;
-- mysql: -> {"Action": "update", "Rows": [["1", "3", false, false], ["1", "4", false, "4!"]]}
-- mariadb: !! rows of shop.t at FILE:OFFSET lack columns (b, v); set binlog_row_image=FULL on the server (and in
--    sessions that set it themselves); START OVER

INSERT INTO t (id, a) VALUES (2, 2);
-- mysql: -> {"Action": "insert", "Rows": [["2", "2", null, "2!"]]}
-- mariadb: !! rows of shop.t at FILE:OFFSET lack columns (b, v); set binlog_row_image=FULL on the server (and in
--    sessions that set it themselves); START OVER

DELETE FROM t;
-- -> {"Action": "delete", "Rows": [["1", "4", false, false], ["2", "2", false, false]]}
