-- A table that was not captured under its old name has rows that consumers have never seen.
-- route: {format: databus}

CREATE DATABASE tools;

CREATE TABLE tools.t (id INT PRIMARY KEY);

INSERT INTO tools.t VALUES (1);

RENAME TABLE tools.t TO t;
-- !! the table that RENAME at FILE:OFFSET names shop.t was not captured before: its rows are not published; to follow
--    such a table without loading it, capture its old name, too (source.include, source.exclude); START OVER

INSERT INTO t VALUES (2);
-- -> {"Action": "insert", "Rows": [["2"]]}

CREATE TABLE u (id INT PRIMARY KEY);
-- -> {"Action": "create", "Query": "CREATE TABLE `shop`.u (id INT PRIMARY KEY)"}

RENAME TABLE t TO v, u TO t;
-- -> {"Action": "alter", "Query": "RENAME TABLE `shop`.t TO v, u TO t"}
-- -> {"Action": "alter", "Query": "RENAME TABLE t TO `shop`.v, u TO t"}
-- -> {"Action": "alter", "Query": "RENAME TABLE t TO v, `shop`.u TO t"}

RENAME TABLE t TO tools.t, tools.t TO t;
-- -> {"Action": "alter", "Query": "RENAME TABLE `shop`.t TO tools.t, tools.t TO t"}

ALTER TABLE t ADD n INT, RENAME TO tools.t;
-- -> {"Action": "alter", "Query": "ALTER TABLE `shop`.t ADD n INT, RENAME TO tools.t"}

ALTER TABLE tools.t DROP n, RENAME TO t;
-- !! the table that RENAME at FILE:OFFSET names shop.t was not captured before: its rows are not published; to follow
--    such a table without loading it, capture its old name, too (source.include, source.exclude); START OVER

DROP DATABASE tools;
