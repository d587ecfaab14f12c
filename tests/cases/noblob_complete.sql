-- With publisher.publish_partial, values that follow from the binlog are filled in: inserts are complete, and so are
-- updates where the server identifies rows by all columns.
-- publisher: {publish_partial: true}
-- omit: Query
-- route: {format: databus}

SET SESSION binlog_row_image = NOBLOB, sql_mode = '';

CREATE TABLE t (id INT PRIMARY KEY, a INT, b TEXT, c BLOB NOT NULL, d LONGTEXT DEFAULT ('x'), e MEDIUMTEXT);
-- -> {"Action": "create"}

INSERT INTO t (id, e) VALUES (1, 'e'), (2, DEFAULT);
-- -> {"Action": "insert", "Rows": [["1", null, null, "", "x", "e"], ["2", null, null, "", "x", null]]}

INSERT INTO t (id) VALUES (3);
-- -> {"Action": "insert", "Rows": [["3", null, null, "", "x", null]]}

CREATE TABLE n (a INT, b TEXT, c BLOB);
-- -> {"Action": "create"}

INSERT INTO n (a) VALUES (1);
-- -> {"Action": "insert", "Rows": [["1", null, null]]}

UPDATE n SET b = 'new';
-- -> {"Action": "update", "Rows": [["1", null, null], ["1", "new", null]]}

UPDATE n SET a = 2;
-- -> {"Action": "update", "Rows": [["1", "new", null], ["2", "new", null]]}

CREATE TABLE k (k BLOB, a INT, b TEXT, PRIMARY KEY (k(5)));
-- -> {"Action": "create"}

INSERT INTO k (k, b) VALUES ('key', 'b');
-- -> {"Action": "insert", "Rows": [["key", null, "b"]]}

UPDATE k SET a = 1;
-- -> {"Action": "update", "Rows": [["key", null, false], ["key", "1", false]]}

DELETE FROM k;
-- -> {"Action": "delete", "Rows": [["key", "1", false]]}
