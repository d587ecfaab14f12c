-- JSON, which MariaDB stores as text and MySQL in a binary form.
-- omit: Query table
-- route: {format: databus}
-- route: {format: maxwell-json}

CREATE TABLE t (id INT PRIMARY KEY, js JSON);
-- databus -> {"Action": "create"}

INSERT INTO t VALUES (1, '{"b": 1, "aa": {"k": [1, 2.50, null, true, "é"]}}'), (2, 'null'), (3, NULL), (4, '[]');
-- mariadb: databus -> {"Action": "insert", "Rows": [["1", "{\"b\": 1, \"aa\": {\"k\": [1, 2.50, null, true,
--    \"é\"]}}"], ["2", "null"], ["3", null], ["4", "[]"]]}
-- mysql: databus -> {"Action": "insert", "Rows": [["1", "{\"b\": 1, \"aa\": {\"k\": [1, 2.5, null, true, \"é\"]}}"],
--    ["2", "null"], ["3", null], ["4", "[]"]]}
-- mariadb: maxwell-json -> {"type": "insert", "data": {"id": 1, "js": "{\"b\": 1, \"aa\": {\"k\": [1, 2.50, null,
--    true, \"é\"]}}"}}
-- mysql: maxwell-json -> {"type": "insert", "data": {"id": 1, "js": {"b": 1, "aa": {"k": [1, 2.5, null, true, "é"]}}}}
-- mariadb: maxwell-json -> {"type": "insert", "data": {"id": 2, "js": "null"}}
-- mysql: maxwell-json -> {"type": "insert", "data": {"id": 2, "js": null}}
-- maxwell-json -> {"type": "insert", "data": {"id": 3, "js": null}}
-- mariadb: maxwell-json -> {"type": "insert", "commit": true, "data": {"id": 4, "js": "[]"}}
-- mysql: maxwell-json -> {"type": "insert", "commit": true, "data": {"id": 4, "js": []}}

UPDATE t SET js = JSON_SET(js, '$.b', 18446744073709551615) WHERE id = 1;
-- mariadb: databus -> {"Action": "update", "Rows": [["1", "{\"b\": 1, \"aa\": {\"k\": [1, 2.50, null, true,
--    \"é\"]}}"], ["1", "{\"b\": 18446744073709551615, \"aa\": {\"k\": [1, 2.50, null, true, \"é\"]}}"]]}
-- mysql: databus -> {"Action": "update", "Rows": [["1", "{\"b\": 1, \"aa\": {\"k\": [1, 2.5, null, true, \"é\"]}}"],
--    ["1", "{\"b\": 18446744073709551615, \"aa\": {\"k\": [1, 2.5, null, true, \"é\"]}}"]]}
-- mariadb: maxwell-json -> {"type": "update", "commit": true, "data": {"id": 1, "js": "{\"b\": 18446744073709551615,
--    \"aa\": {\"k\": [1, 2.50, null, true, \"é\"]}}"}, "old": {"js": "{\"b\": 1, \"aa\": {\"k\": [1, 2.50, null, true,
--    \"é\"]}}"}}
-- mysql: maxwell-json -> {"type": "update", "commit": true, "data": {"id": 1, "js": {"b": 18446744073709551615,
--    "aa": {"k": [1, 2.5, null, true, "é"]}}}, "old": {"js": {"b": 1, "aa": {"k": [1, 2.5, null, true, "é"]}}}}
