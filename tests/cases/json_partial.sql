-- With PARTIAL_JSON, MySQL logs only what changed in a document. Messages have the whole document.
-- servers: mysql
-- omit: table
-- route: {format: maxwell-json}

SET SESSION binlog_row_value_options = 'PARTIAL_JSON';

CREATE TABLE t (id INT PRIMARY KEY, js JSON);

INSERT INTO t VALUES (1, JSON_OBJECT('name', REPEAT('x', 40), 'tags', JSON_ARRAY('a', 'b'), 'n', 1));
-- -> {"type": "insert", "commit": true, "data": {"id": 1, "js": {"n": 1,
--    "name": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "tags": ["a", "b"]}}}

UPDATE t SET js = JSON_SET(js, '$.n', 2) WHERE id = 1;
-- -> {"type": "update", "commit": true, "data": {"id": 1, "js": {"n": 2,
--    "name": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "tags": ["a", "b"]}}, "old": {"js": {"n": 1,
--    "name": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "tags": ["a", "b"]}}}

UPDATE t SET js = JSON_REMOVE(js, '$.tags[0]') WHERE id = 1;
-- -> {"type": "update", "commit": true, "data": {"id": 1, "js": {"n": 2,
--    "name": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "tags": ["b"]}}, "old": {"js": {"n": 2,
--    "name": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "tags": ["a", "b"]}}}

UPDATE t SET js = JSON_ARRAY_INSERT(js, '$.tags[0]', 'first') WHERE id = 1;
-- -> {"type": "update", "commit": true, "data": {"id": 1, "js": {"n": 2,
--    "name": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "tags": ["first", "b"]}}, "old": {"js": {"n": 2,
--    "name": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "tags": ["b"]}}}
