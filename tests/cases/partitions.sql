-- A key spreads a table's rows over partitions. An UPDATE that moves a row is split into a delete and an insert.
-- partitions: 3
-- omit: Query
-- route: {format: databus, partition_by: primary_key, topic: by_key, output: a}
-- route: {format: databus, key: [shop_id], topic: by_shop, output: b}
-- route: {format: databus, topic: by_table, output: c}

CREATE TABLE t (id INT PRIMARY KEY, shop_id INT);
-- by_key/0 -> {"Action": "create"}
-- by_key/1 -> {"Action": "create"}
-- by_key/2 -> {"Action": "create"}
-- by_shop/0 -> {"Action": "create"}
-- by_shop/1 -> {"Action": "create"}
-- by_shop/2 -> {"Action": "create"}
-- by_table/2 -> {"Action": "create"}

INSERT INTO t VALUES (1, 1), (2, 1), (3, 2);
-- by_key/2 -> {"Action": "insert", "Rows": [["1", "1"]]}
-- by_key/1 -> {"Action": "insert", "Rows": [["2", "1"], ["3", "2"]]}
-- by_shop/2 -> {"Action": "insert", "Rows": [["1", "1"], ["2", "1"]]}
-- by_shop/1 -> {"Action": "insert", "Rows": [["3", "2"]]}
-- by_table/2 -> {"Action": "insert", "Rows": [["1", "1"], ["2", "1"], ["3", "2"]]}

UPDATE t SET id = 5 WHERE id = 1;
-- by_key/2 -> {"Action": "delete", "Rows": [["1", "1"]]}
-- by_key/1 -> {"Action": "insert", "Rows": [["5", "1"]]}
-- by_shop/2 -> {"Action": "update", "Rows": [["1", "1"], ["5", "1"]]}
-- by_table/2 -> {"Action": "update", "Rows": [["1", "1"], ["5", "1"]]}

UPDATE t SET shop_id = 2 WHERE id = 2;
-- by_key/1 -> {"Action": "update", "Rows": [["2", "1"], ["2", "2"]]}
-- by_shop/2 -> {"Action": "delete", "Rows": [["2", "1"]]}
-- by_shop/1 -> {"Action": "insert", "Rows": [["2", "2"]]}
-- by_table/2 -> {"Action": "update", "Rows": [["2", "1"], ["2", "2"]]}
