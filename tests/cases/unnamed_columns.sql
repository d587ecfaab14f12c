-- If the binlog has no column names, they come from the preceding DDL.
-- global: binlog_row_metadata=MINIMAL
-- omit: table
-- route: {format: maxwell-json}

CREATE TABLE t (id INT UNSIGNED PRIMARY KEY, name VARCHAR(10) CHARACTER SET latin1, e ENUM('a','b'));

INSERT INTO t VALUES (4294967295, 'é', 'b');
-- -> {"type": "insert", "commit": true, "data": {"id": 4294967295, "name": "é", "e": "b"}}

ALTER TABLE t RENAME COLUMN name TO label, ADD stock INT FIRST;

INSERT INTO t VALUES (7, 1, 'tea', NULL);
-- -> {"type": "insert", "commit": true, "data": {"stock": 7, "id": 1, "label": "tea", "e": null}}
