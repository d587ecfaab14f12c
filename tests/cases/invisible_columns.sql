-- Invisible columns are published like others.
-- omit: table
-- route: {format: maxwell-json}

CREATE TABLE t (id INT PRIMARY KEY, seen INT, hidden INT DEFAULT 7 INVISIBLE);

INSERT INTO t VALUES (1, 2);
-- -> {"type": "insert", "commit": true, "data": {"id": 1, "seen": 2, "hidden": 7}}

INSERT INTO t (id, hidden) VALUES (2, 8);
-- -> {"type": "insert", "commit": true, "data": {"id": 2, "seen": null, "hidden": 8}}
