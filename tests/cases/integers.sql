-- Integers at both ends of their range.
-- omit: Query table
-- route: {format: databus}
-- route: {format: debezium-json, options: {schemas_enable: false, include_schema_changes: false}}
-- route: {format: maxwell-json}

CREATE TABLE t (a TINYINT, b SMALLINT UNSIGNED, c MEDIUMINT, d INT UNSIGNED, e BIGINT, f BIGINT UNSIGNED, g BOOLEAN);
-- databus -> {"Action": "create"}

INSERT INTO t VALUES (-128, 65535, -8388608, 4294967295, -9223372036854775808, 18446744073709551615, TRUE);
-- databus -> {"Action": "insert", "Rows": [["-128", "65535", "-8388608", "4294967295", "-9223372036854775808",
--    "18446744073709551615", "1"]]}
-- debezium-json -> {"before": null, "after": {"a": -128, "b": 65535, "c": -8388608, "d": 4294967295,
--    "e": -9223372036854775808, "f": 18446744073709551615, "g": true}, "op": "c"}
-- maxwell-json -> {"type": "insert", "commit": true, "data": {"a": -128, "b": 65535, "c": -8388608, "d": 4294967295,
--    "e": -9223372036854775808, "f": 18446744073709551615, "g": 1}}

INSERT INTO t VALUES (127, 0, 8388607, 0, 9223372036854775807, 0, FALSE), (NULL, NULL, NULL, NULL, NULL, NULL, NULL);
-- databus -> {"Action": "insert", "Rows": [["127", "0", "8388607", "0", "9223372036854775807", "0", "0"], [null, null,
--    null, null, null, null, null]]}
-- debezium-json -> {"before": null, "after": {"a": 127, "b": 0, "c": 8388607, "d": 0, "e": 9223372036854775807,
--    "f": 0, "g": false}, "op": "c"}
-- debezium-json -> {"before": null, "after": {"a": null, "b": null, "c": null, "d": null, "e": null, "f": null,
--    "g": null}, "op": "c"}
-- maxwell-json -> {"type": "insert", "data": {"a": 127, "b": 0, "c": 8388607, "d": 0, "e": 9223372036854775807,
--    "f": 0, "g": 0}}
-- maxwell-json -> {"type": "insert", "commit": true, "data": {"a": null, "b": null, "c": null, "d": null, "e": null,
--    "f": null, "g": null}}
