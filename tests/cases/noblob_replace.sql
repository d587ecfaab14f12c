-- MariaDB logs a REPLACE as an update that lacks the columns it empties. MySQL logs that they are NULL.
-- publisher: {publish_partial: true}
-- omit: Query
-- route: {format: databus}

SET SESSION binlog_row_image = NOBLOB;

CREATE TABLE t (id INT PRIMARY KEY, a INT, b TEXT);
-- -> {"Action": "create"}

INSERT INTO t VALUES (1, 1, 'text');
-- -> {"Action": "insert", "Rows": [["1", "1", "text"]]}

REPLACE INTO t (id, a) VALUES (1, 5);
-- mysql: -> {"Action": "update", "Rows": [["1", "1", false], ["1", "5", null]]}
-- mariadb: -> {"Action": "update", "Rows": [["1", "1", false], ["1", "5", false]]}

REPLACE INTO t (id, a) VALUES (2, 6);
-- -> {"Action": "insert", "Rows": [["2", "6", null]]}
