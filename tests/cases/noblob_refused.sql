-- Changes that cannot be published without the values that NOBLOB leaves out become dead letters.
-- publisher: {publish_partial: true}
-- partitions: 2
-- omit: Query
-- route: {format: databus, options: {compat: strict}, output: strict, topic: strict, partition_by: single}
-- route: {format: dip, partition_by: single}
-- route: {format: tdsql, partition_by: single}
-- route: {format: databus, output: key, topic: key, partition_by: primary_key}
-- route: {format: databus, output: by_text, topic: by_text, key: [b]}
-- route: {format: databus, output: where, topic: where, partition_by: single, where: [{column: b, equals: "yes"}, {column: a, in: [1, 2]}]}
-- route: {format: databus, output: enters, topic: enters, partition_by: single, where: [{column: a, in: [2, 3]}]}
-- route: {format: dip, output: without, topic: without, partition_by: single, columns: {exclude: [b]}}
-- route: {format: databus, output: masked, topic: masked, partition_by: single, mask: [b]}

SET SESSION binlog_row_image = NOBLOB;

CREATE TABLE t (id INT PRIMARY KEY, a INT, b TEXT);
-- strict/0 -> {"Action": "create"}
-- dip/0 -> {"data": null, "isDdl": true, "mysqlType": null, "old": null, "pkNames": null,
--    "sql": "CREATE TABLE `shop`.t (id INT PRIMARY KEY, a INT, b TEXT)", "sqlType": null, "table": "t",
--    "type": "CREATE"}
-- tdsql/0 -> {"eventtypestr": "gtid", "table": ""}
-- tdsql/0 -> {"eventtypestr": "query", "table": "t", "sql": "CREATE TABLE `shop`.t (id INT PRIMARY KEY, a INT,
--    b TEXT)"}
-- key/0 -> {"Action": "create"}
-- key/1 -> {"Action": "create"}
-- by_text/0 -> {"Action": "create"}
-- by_text/1 -> {"Action": "create"}
-- where/0 -> {"Action": "create"}
-- enters/0 -> {"Action": "create"}
-- without/0 -> {"data": null, "isDdl": true, "mysqlType": null, "old": null, "pkNames": null,
--    "sql": "CREATE TABLE `shop`.t (id INT PRIMARY KEY, a INT, b TEXT)", "sqlType": null, "table": "t",
--    "type": "CREATE"}
-- masked/0 -> {"Action": "create"}

INSERT INTO t VALUES (1, 1, 'yes');
-- strict/0 -> {"Action": "insert", "Rows": [["1", "1", "yes"]]}
-- dip/0 -> {"EVENT_SERVER_ID": null, "GROUP_ID": null, "NEW_VALUES": {"id": "1", "a": "1", "b": "yes"},
--    "OLD_VALUES": null, "TABLE": "t", "TYPE": "I"}
-- tdsql/0 -> {"eventtypestr": "gtid", "table": ""}
-- tdsql/0 -> {"eventtypestr": "insert", "table": "t", "where": [], "field": ["1", "1", "'yes'"]}
-- key/1 -> {"Action": "insert", "Rows": [["1", "1", "yes"]]}
-- by_text/1 -> {"Action": "insert", "Rows": [["1", "1", "yes"]]}
-- where/0 -> {"Action": "insert", "Rows": [["1", "1", "yes"]]}
-- without/0 -> {"EVENT_SERVER_ID": null, "GROUP_ID": null, "NEW_VALUES": {"id": "1", "a": "1"}, "OLD_VALUES": null,
--    "TABLE": "t", "TYPE": "I"}
-- masked/0 -> {"Action": "insert", "Rows": [["1", "1", "***"]]}
-- tdsql/0 -> {"eventtypestr": "xid", "table": "t"}

UPDATE t SET a = 2;
-- strict/0 !! the binlog lacks the values of b, and format databus cannot express that
-- dip/0 !! the binlog lacks the values of b, and format dip cannot express that
-- tdsql/0 -> {"eventtypestr": "gtid", "table": ""}
-- tdsql/0 !! the binlog lacks the values of b, and format tdsql cannot express that
-- key/1 -> {"Action": "update", "Rows": [["1", "1", false], ["1", "2", false]]}
-- by_text/-1 !! the binlog lacks the values of b, by which the partition is chosen
-- where/0 !! the binlog lacks the value of b, on which a rule has a condition
-- enters/0 !! the binlog lacks the values of b, and an update that is published as an insert needs them
-- without/0 -> {"EVENT_SERVER_ID": null, "GROUP_ID": null, "NEW_VALUES": {"id": "1", "a": "2"},
--    "OLD_VALUES": {"id": "1", "a": "1"}, "TABLE": "t", "TYPE": "U"}
-- masked/0 -> {"Action": "update", "Rows": [["1", "1", false], ["1", "2", false]]}
-- tdsql/0 -> {"eventtypestr": "xid", "table": ""}

UPDATE t SET a = 3, b = 'no';
-- strict/0 !! the binlog lacks the values of b, and format databus cannot express that
-- dip/0 !! the binlog lacks the values of b, and format dip cannot express that
-- tdsql/0 -> {"eventtypestr": "gtid", "table": ""}
-- tdsql/0 !! the binlog lacks the values of b, and format tdsql cannot express that
-- key/1 -> {"Action": "update", "Rows": [["1", "2", false], ["1", "3", "no"]]}
-- by_text/-1 !! the binlog lacks the values of b, by which the partition is chosen
-- where/0 !! the binlog lacks the value of b, on which a rule has a condition
-- enters/0 -> {"Action": "update", "Rows": [["1", "2", false], ["1", "3", "no"]]}
-- without/0 -> {"EVENT_SERVER_ID": null, "GROUP_ID": null, "NEW_VALUES": {"id": "1", "a": "3"},
--    "OLD_VALUES": {"id": "1", "a": "2"}, "TABLE": "t", "TYPE": "U"}
-- masked/0 -> {"Action": "update", "Rows": [["1", "2", false], ["1", "3", "***"]]}
-- tdsql/0 -> {"eventtypestr": "xid", "table": ""}

UPDATE t SET a = 4;
-- strict/0 !! the binlog lacks the values of b, and format databus cannot express that
-- dip/0 !! the binlog lacks the values of b, and format dip cannot express that
-- tdsql/0 -> {"eventtypestr": "gtid", "table": ""}
-- tdsql/0 !! the binlog lacks the values of b, and format tdsql cannot express that
-- key/1 -> {"Action": "update", "Rows": [["1", "3", false], ["1", "4", false]]}
-- by_text/-1 !! the binlog lacks the values of b, by which the partition is chosen
-- enters/0 -> {"Action": "delete", "Rows": [["1", "3", false]]}
-- without/0 -> {"EVENT_SERVER_ID": null, "GROUP_ID": null, "NEW_VALUES": {"id": "1", "a": "4"},
--    "OLD_VALUES": {"id": "1", "a": "3"}, "TABLE": "t", "TYPE": "U"}
-- masked/0 -> {"Action": "update", "Rows": [["1", "3", false], ["1", "4", false]]}
-- tdsql/0 -> {"eventtypestr": "xid", "table": ""}

UPDATE t SET id = 5;
-- strict/0 !! the binlog lacks the values of b, and format databus cannot express that
-- dip/0 !! the binlog lacks the values of b, and format dip cannot express that
-- tdsql/0 -> {"eventtypestr": "gtid", "table": ""}
-- tdsql/0 !! the binlog lacks the values of b, and format tdsql cannot express that
-- key/1 -> {"Action": "delete", "Rows": [["1", "4", false]]}
-- key/0 !! the binlog lacks the values of b, and an update that is published as an insert needs them
-- by_text/-1 !! the binlog lacks the values of b, by which the partition is chosen
-- without/0 -> {"EVENT_SERVER_ID": null, "GROUP_ID": null, "NEW_VALUES": {"id": "5", "a": "4"},
--    "OLD_VALUES": {"id": "1", "a": "4"}, "TABLE": "t", "TYPE": "U"}
-- masked/0 -> {"Action": "update", "Rows": [["1", "4", false], ["5", "4", false]]}
-- tdsql/0 -> {"eventtypestr": "xid", "table": ""}

DELETE FROM t;
-- strict/0 !! the binlog lacks the values of b, and format databus cannot express that
-- dip/0 !! the binlog lacks the values of b, and format dip cannot express that
-- tdsql/0 -> {"eventtypestr": "gtid", "table": ""}
-- tdsql/0 !! the binlog lacks the values of b, and format tdsql cannot express that
-- key/0 -> {"Action": "delete", "Rows": [["5", "4", false]]}
-- by_text/-1 !! the binlog lacks the values of b, by which the partition is chosen
-- without/0 -> {"EVENT_SERVER_ID": null, "GROUP_ID": null, "NEW_VALUES": null, "OLD_VALUES": {"id": "5", "a": "4"},
--    "TABLE": "t", "TYPE": "D"}
-- masked/0 -> {"Action": "delete", "Rows": [["5", "4", false]]}
-- tdsql/0 -> {"eventtypestr": "xid", "table": ""}
