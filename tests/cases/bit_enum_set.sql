-- BIT, ENUM and SET. ENUM and SET are numbers in format databus, labels in Debezium's and Maxwell's messages.
-- omit: Query table
-- route: {format: databus}
-- route: {format: debezium-json, options: {schemas_enable: false, include_schema_changes: false}}
-- route: {format: maxwell-json}

CREATE TABLE t (b1 BIT(1), b9 BIT(9), b64 BIT(64), e ENUM('new','b,c','d''e','ß'), s SET('x','y','z w','é'));
-- databus -> {"Action": "create"}

INSERT INTO t VALUES (b'1', b'100000001', 18446744073709551615, 'ß', 'x,z w,é'), (b'0', 0, 0, 'b,c', '');
-- databus -> {"Action": "insert", "Rows": [["1", "257", "18446744073709551615", "4", "13"], ["0", "0", "0", "2", "0"]]}
-- debezium-json -> {"before": null, "after": {"b1": true, "b9": "AQE=", "b64": "//////////8=", "e": "ß",
--    "s": "x,z w,é"}, "op": "c"}
-- debezium-json -> {"before": null, "after": {"b1": false, "b9": "AAA=", "b64": "AAAAAAAAAAA=", "e": "b,c", "s": ""},
--    "op": "c"}
-- maxwell-json -> {"type": "insert", "data": {"b1": 1, "b9": 257, "b64": 18446744073709551615, "e": "ß", "s": ["x",
--    "z w", "é"]}}
-- maxwell-json -> {"type": "insert", "commit": true, "data": {"b1": 0, "b9": 0, "b64": 0, "e": "b,c", "s": []}}

INSERT INTO t (e) VALUES ('none of them');
-- databus -> {"Action": "insert", "Rows": [[null, null, null, "0", null]]}
-- debezium-json -> {"before": null, "after": {"b1": null, "b9": null, "b64": null, "e": "", "s": null}, "op": "c"}
-- maxwell-json -> {"type": "insert", "commit": true, "data": {"b1": null, "b9": null, "b64": null, "e": "", "s": null}}

ALTER TABLE t MODIFY e ENUM('first','new','b,c');
-- databus -> {"Action": "alter"}

UPDATE t SET e = 'first' WHERE e = 'b,c';
-- databus -> {"Action": "update", "Rows": [["0", "0", "0", "3", "0"], ["0", "0", "0", "1", "0"]]}
-- debezium-json -> {"before": {"b1": false, "b9": "AAA=", "b64": "AAAAAAAAAAA=", "e": "b,c", "s": ""},
--    "after": {"b1": false, "b9": "AAA=", "b64": "AAAAAAAAAAA=", "e": "first", "s": ""}, "op": "u"}
-- maxwell-json -> {"type": "update", "commit": true, "data": {"b1": 0, "b9": 0, "b64": 0, "e": "first", "s": []},
--    "old": {"e": "b,c"}}
