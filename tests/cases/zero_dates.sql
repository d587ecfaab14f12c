-- Zero dates, and dates without a day: in Debezium's messages they are null, or 0 in a NOT NULL column.
-- omit: Query table
-- route: {format: databus}
-- route: {format: debezium-json, options: {schemas_enable: false, include_schema_changes: false}}
-- route: {format: maxwell-json}

CREATE TABLE t (d DATE, dt DATETIME, ts TIMESTAMP NULL, must DATE NOT NULL);
-- databus -> {"Action": "create"}

INSERT INTO t VALUES ('0000-00-00', '0000-00-00 00:00:00', '0000-00-00 00:00:00', '0000-00-00');
-- databus -> {"Action": "insert", "Rows": [["0000-00-00", "0000-00-00 00:00:00", "0000-00-00 00:00:00", "0000-00-00"]]}
-- debezium-json -> {"before": null, "after": {"d": null, "dt": null, "ts": null, "must": 0}, "op": "c"}
-- maxwell-json -> {"type": "insert", "commit": true, "data": {"d": "0000-00-00", "dt": "0000-00-00 00:00:00",
--    "ts": "0000-00-00 00:00:00", "must": "0000-00-00"}}

INSERT INTO t VALUES ('2021-00-00', '2021-02-00 01:02:03', NULL, '2021-02-03');
-- databus -> {"Action": "insert", "Rows": [["2021-00-00", "2021-02-00 01:02:03", null, "2021-02-03"]]}
-- debezium-json -> {"before": null, "after": {"d": null, "dt": null, "ts": null, "must": 18661}, "op": "c"}
-- maxwell-json -> {"type": "insert", "commit": true, "data": {"d": "2021-00-00", "dt": "2021-02-00 01:02:03",
--    "ts": null, "must": "2021-02-03"}}
