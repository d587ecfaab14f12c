-- If the binlog does not name keys, the unique key comes from the preceding DDL.
-- global: binlog_row_metadata=MINIMAL
-- show: key
-- omit: before after
-- route: {format: debezium-json, options: {schemas_enable: false, include_schema_changes: false}}

CREATE TABLE several (a INT, UNIQUE KEY z (a, b), b INT NOT NULL UNIQUE, c INT NOT NULL, UNIQUE (c, b), UNIQUE (c));

INSERT INTO several VALUES (1, 2, 3);
-- -> {"b": 2} {"op": "c"}

ALTER TABLE several MODIFY a INT NOT NULL, DROP INDEX B;

INSERT INTO several VALUES (4, 5, 6);
-- -> {"c": 6, "b": 5} {"op": "c"}

ALTER TABLE several DROP INDEX c, RENAME COLUMN a TO d;

INSERT INTO several VALUES (7, 8, 9);
-- -> {"c": 9} {"op": "c"}

DROP INDEX c_2 ON several;

INSERT INTO several VALUES (10, 11, 12);
-- -> {"d": 10, "b": 11} {"op": "c"}
