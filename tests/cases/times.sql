-- Dates and times with fractions. A TIMESTAMP is in UTC, whatever the session's time zone.
-- omit: Query table
-- route: {format: databus}
-- route: {format: debezium-json, options: {schemas_enable: false, include_schema_changes: false}}
-- route: {format: maxwell-json}

CREATE TABLE t (y YEAR, d DATE, t0 TIME, t6 TIME(6), dt DATETIME, dt3 DATETIME(3), ts TIMESTAMP(6) NULL);
-- databus -> {"Action": "create"}

INSERT INTO t VALUES (2024, '2024-02-29', '-838:59:59', '-00:00:00.000001', '1000-01-01 00:00:00', '9999-12-31 23:59:59.999', '1970-01-01 00:00:01.000001');
-- databus -> {"Action": "insert", "Rows": [["2024", "2024-02-29", "-838:59:59", "-00:00:00.000001",
--    "1000-01-01 00:00:00", "9999-12-31 23:59:59.999", "1970-01-01 00:00:01.000001"]]}
-- debezium-json -> {"before": null, "after": {"y": 2024, "d": 19782, "t0": -3020399000000, "t6": -1,
--    "dt": -30610224000000, "dt3": 253402300799999, "ts": "1970-01-01T00:00:01.000001Z"}, "op": "c"}
-- maxwell-json -> {"type": "insert", "commit": true, "data": {"y": 2024, "d": "2024-02-29", "t0": "-838:59:59",
--    "t6": "-00:00:00.000001", "dt": "1000-01-01 00:00:00", "dt3": "9999-12-31 23:59:59.999",
--    "ts": "1970-01-01 00:00:01.000001"}}

SET time_zone = '+05:30';

INSERT INTO t (y, ts) VALUES (1901, '2021-02-03 04:05:06.789012');
-- databus -> {"Action": "insert", "Rows": [["1901", null, null, null, null, null, "2021-02-02 22:35:06.789012"]]}
-- debezium-json -> {"before": null, "after": {"y": 1901, "d": null, "t0": null, "t6": null, "dt": null, "dt3": null,
--    "ts": "2021-02-02T22:35:06.789012Z"}, "op": "c"}
-- maxwell-json -> {"type": "insert", "commit": true, "data": {"y": 1901, "d": null, "t0": null, "t6": null,
--    "dt": null, "dt3": null, "ts": "2021-02-02 22:35:06.789012"}}
