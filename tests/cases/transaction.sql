-- The messages of a transaction come when it commits, in the order of its statements over all tables.
-- route: {format: maxwell-json, options: {output_xoffset: true}}

CREATE TABLE a (id INT PRIMARY KEY);

CREATE TABLE b (id INT PRIMARY KEY);

BEGIN;

INSERT INTO a VALUES (1), (2);

INSERT INTO b VALUES (1);

UPDATE a SET id = 3 WHERE id = 2;

COMMIT;
-- -> {"table": "a", "type": "insert", "xoffset": 0, "data": {"id": 1}}
-- -> {"table": "a", "type": "insert", "xoffset": 1, "data": {"id": 2}}
-- -> {"table": "b", "type": "insert", "xoffset": 2, "data": {"id": 1}}
-- -> {"table": "a", "type": "update", "commit": true, "data": {"id": 3}, "old": {"id": 2}}

BEGIN;

INSERT INTO b VALUES (2);

ROLLBACK;
